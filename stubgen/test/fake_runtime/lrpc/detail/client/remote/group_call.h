// A stand-in for libclient's calls to a group. The group has one member, which answers like a single server.
#pragma once

#include <cstddef>
#include <cstdint>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "lrpc/detail/client/call/stub.h"
#include "lrpc/detail/shim/call/value.h"

namespace lrpc {

template <class Answer, class... Passed>
struct MemberReply {
  std::uint32_t who = 1;
  Answer result;
};
template <class Answer, class... Passed>
struct MemberReplies {
  std::vector<MemberReply<Answer, Passed...>> replies;
  std::size_t members = 1;
};
template <class Answer, class... Passed>
using Replies = Result<MemberReplies<Answer, Passed...>>;

namespace client {

template <class T>
using Place = std::conditional_t<std::is_same_v<T, std::vector<std::byte>>, Buffer, T>;

/// Results by reference are not copied to the caller, and there is no space for bytes.
template <class P, class... Passed, class... A>
Replies<typename P::Result_, Passed...> invoke_all(BindingObject& object, const A&... arguments) noexcept {
  std::tuple<Place<Passed>...> places;
  auto answer = std::apply([&](auto&... each) { return invoke(object, P{&each...}, arguments...); }, places);
  MemberReplies<typename P::Result_, Passed...> all;
  all.replies.push_back({1, std::move(answer)});
  return all;
}

}  // namespace client
}  // namespace lrpc
