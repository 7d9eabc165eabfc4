// Calls to a group (a binding to NAME@GROUP) that return each member's answer: `client.all().Get(key)`. Generated stubs
// use this.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "lrpc/detail/client/binding/remote_path.h"
#include "lrpc/detail/client/call/stub.h"
#include "lrpc/detail/shim/call/value.h"
#include "lrpc/detail/shim/result.h"

namespace lrpc {

/// A member of a group: a host.
struct GroupMember {
  std::uint32_t address = 0;  ///< IPv4, in host order.
  /// "10.0.0.1".
  [[nodiscard]] std::string str() const;
  friend bool operator==(GroupMember, GroupMember) = default;
};

/// The parameters that come back by reference, in the order of declaration: the type of one, a tuple of several.
template <class... Passed>
using PassedBack =
    std::conditional_t<sizeof...(Passed) == 1, std::tuple_element_t<0, std::tuple<Passed...>>, std::tuple<Passed...>>;

/// One member's answer: the procedure's results, an error that it raised or returned, or why there is no answer
/// (call_failed; message_too_long; call_lost, if a link could not carry the reply; limit_reached, also if there was no
/// room for the reply). `passed` has the results of type bytes and the new values of `inout` arguments; if `result` is
/// an error, they are empty or value-initialised.
template <class Answer, class... Passed>
struct MemberReply {
  GroupMember who;
  Answer result;
  PassedBack<Passed...> passed;
};
template <class Answer>
struct MemberReply<Answer> {
  GroupMember who;
  Answer result;
};

/// The members' answers when as many have answered as the group needs: in any order, each member at most once. Members
/// that had neither answered nor failed by then are missing.
template <class Answer, class... Passed>
struct MemberReplies {
  std::vector<MemberReply<Answer, Passed...>> replies;
  std::size_t members = 0;  ///< How many the group has.

  [[nodiscard]] auto begin() const noexcept { return replies.begin(); }
  [[nodiscard]] auto end() const noexcept { return replies.end(); }
  [[nodiscard]] std::size_t size() const noexcept { return replies.size(); }
};
template <class Answer, class... Passed>
using Replies = Result<MemberReplies<Answer, Passed...>>;

}  // namespace lrpc

namespace lrpc::client {

/// A member's reply on the A-stack. Code that takes results uses it in place of a Call, but its failure() does not end
/// the call.
class CollatedReply {
 public:
  CollatedReply(const BindingObject& binding, Call& call) noexcept : binding_(binding), call_(call) {}
  [[nodiscard]] std::byte* image() const noexcept { return call_.image(); }
  [[nodiscard]] std::byte* tail() const noexcept { return call_.tail(); }
  [[nodiscard]] detail::Failure failure(std::uint16_t status, const char* procedure) const noexcept {
    return failure_of(binding_, call_.linkage(), status, procedure);
  }

 private:
  const BindingObject& binding_;
  Call& call_;
};

/// The destination of one parameter of a member's reply: at most `most` bytes, or a value.
template <class T>
struct Destination {
  explicit Destination(std::size_t /*most*/) noexcept {}
  [[nodiscard]] T* place() noexcept { return &value; }
  [[nodiscard]] T taken() noexcept { return value; }
  T value{};
};
template <>
struct Destination<std::vector<std::byte>> {
  explicit Destination(std::size_t most) : bytes(most), buffer(bytes) {}
  [[nodiscard]] Buffer* place() noexcept { return &buffer; }
  [[nodiscard]] std::vector<std::byte> taken() const {
    return {bytes.begin(), bytes.begin() + std::ssize(buffer.contents())};
  }
  std::vector<std::byte> bytes;
  Buffer buffer;
};

/// Takes a member's answer to procedure P. `most`: the most bytes that a buffer in it can have.
template <class P, class... Passed>
[[nodiscard]] MemberReply<typename P::Result_, Passed...> take_reply(GroupMember who, std::uint16_t status,
                                                                     const CollatedReply& reply,
                                                                     [[maybe_unused]] std::size_t most) {
  const auto take = [&](Destination<Passed>... to) -> MemberReply<typename P::Result_, Passed...> {
    auto result = P{to.place()...}(status, reply);
    if constexpr (sizeof...(Passed) == 0) {
      return {who, std::move(result)};
    } else {
      return {who, std::move(result), PassedBack<Passed...>(to.taken()...)};
    }
  };
  return take(Destination<Passed>(most)...);
}

/// Calls `work(of)`; false if there was no memory for it. The library catches the exception, so that programs can be
/// compiled without exceptions.
[[nodiscard]] bool had_memory(void (*work)(void* of), void* of) noexcept;

/// Why all() cannot be used on a binding.
[[nodiscard]] inline detail::Failure not_to_a_group() noexcept {
  return refused(Errc::not_supported, "all() needs a binding to a group: import NAME@GROUP");
}

/// A call to all members of a group, from its arguments to their answers. Blocks and ends as invoke(). Errors: those of
/// invoke() (if too few answered, one member's error, or call_failed); not_supported (not_to_a_group());
/// system_error (no memory for the replies; the call may have been executed).
template <class P, class... Passed, class... A>
[[gnu::cold, gnu::noinline]] Replies<typename P::Result_, Passed...> invoke_all(BindingObject& object,
                                                                                A... arguments) noexcept {
  if (const Refusal refusal = check_arguments<P>(arguments...); refusal.what != nullptr)
    return refused(refusal.code, refusal.what);
  if (!object.remote()) return not_to_a_group();
  RemoteCall call(object, P::kProcedure_.astack_class);
  if (!call.taken()) return call.error();
  push_arguments<P>(call, arguments...);
  RemotePath& path = *object.remote_path();
  auto replies = path.call_all(P::kProcedure_.procedure, call.linkage());
  if (replies.code() == Errc::not_supported) return not_to_a_group();
  if (!replies) return replies.error();
  const Errc failure = replies->status() == 0 ? Errc::ok : Call::failure(replies->status());
  MemberReplies<typename P::Result_, Passed...> collated{.replies = {}, .members = replies->members()};
  std::optional<Error> first_error;
  auto collate = [&] {
    while (const auto reply = replies->next()) {
      const std::uint16_t status =
          path.put_reply(P::kProcedure_.procedure, call.linkage(), reply->status, reply->image);
      auto made = take_reply<P, Passed...>({reply->host}, status, CollatedReply(object, call), reply->image.size());
      if (failure == Errc::call_failed && !made.result && made.result.code() != Errc::call_failed &&
          made.result.code() != Errc::raised) {
        first_error = made.result.error();
        return;
      }
      collated.replies.push_back(std::move(made));
    }
  };
  if (!had_memory([](void* work) { (*static_cast<decltype(collate)*>(work))(); }, &collate)) return Errc::system_error;
  if (first_error) return *std::move(first_error);
  if (failure != Errc::ok) return failure;
  if (replies->damaged()) return Errc::call_failed;
  return collated;
}

}  // namespace lrpc::client
