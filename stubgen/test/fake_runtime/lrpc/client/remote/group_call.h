// A stand-in for libclient's calls to a group: it has one member, which answers as any call.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "lrpc/client/call/stub.h"

namespace lrpc {

template <class Answer>
struct MemberReply {
  std::uint32_t who = 1;
  Answer result;
};
template <class Answer>
struct MemberReplies {
  std::vector<MemberReply<Answer>> replies;
  std::size_t members = 1;
};
template <class Answer>
using Replies = Result<MemberReplies<Answer>>;

namespace client {

template <class P, class... A>
Replies<typename P::Result_> invoke_all(BindingObject& object, const A&... arguments) noexcept {
  auto answer = invoke(object, P{}, arguments...);
  MemberReplies<typename P::Result_> all;
  all.replies.push_back({1, std::move(answer)});
  return all;
}

}  // namespace client
}  // namespace lrpc
