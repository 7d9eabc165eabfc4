// A stand-in for libclient's calls to a group: it has one member, which answers as any call.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <tuple>
#include <utility>
#include <vector>

#include "lrpc/client/call/stub.h"
#include "lrpc/shim/call/value.h"

namespace lrpc {

template <class Answer, std::size_t kBytes = 0>
struct MemberReply {
  std::uint32_t who = 1;
  Answer result;
};
template <class Answer, std::size_t kBytes = 0>
struct MemberReplies {
  std::vector<MemberReply<Answer, kBytes>> replies;
  std::size_t members = 1;
};
template <class Answer, std::size_t kBytes = 0>
using Replies = Result<MemberReplies<Answer, kBytes>>;

namespace client {

/// Bytes are not given: there is room for none.
template <class P, std::size_t... kBounds, class... A>
Replies<typename P::Result_, sizeof...(kBounds)> invoke_all(BindingObject& object, const A&... arguments) noexcept {
  std::array<Buffer, sizeof...(kBounds)> none;
  auto answer = std::apply([&](auto&... each) { return invoke(object, P{&each...}, arguments...); }, none);
  MemberReplies<typename P::Result_, sizeof...(kBounds)> all;
  all.replies.push_back({1, std::move(answer)});
  return all;
}

}  // namespace client
}  // namespace lrpc
