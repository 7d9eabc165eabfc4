// Calls to a group (a binding to NAME@GROUP) that return the answer of each member: `client.all().Get(key)`. Generated
// stubs consist of this.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "lrpc/client/call/stub.h"
#include "lrpc/client/remote/remote_path.h"
#include "lrpc/shim/result.h"

namespace lrpc {

/// A host that belongs to a group.
struct GroupMember {
  std::uint32_t address = 0;  ///< IPv4, in host order.
  /// "10.0.0.1".
  [[nodiscard]] std::string str() const;
  friend bool operator==(GroupMember, GroupMember) = default;
};

/// One member's answer: the procedure's results, an error that it raised or returned, or why there is no answer
/// (call_failed; message_too_long; limit_reached, also for a reply for which there was no room).
template <class Answer>
struct MemberReply {
  GroupMember who;
  Answer result;
};

/// The members' answers at the moment when as many have answered as the group needs: in any order, each member at most
/// once. Members that had neither answered nor failed by then are missing.
template <class Answer>
struct MemberReplies {
  std::vector<MemberReply<Answer>> replies;
  std::size_t members = 0;  ///< That the group has.

  [[nodiscard]] auto begin() const noexcept { return replies.begin(); }
  [[nodiscard]] auto end() const noexcept { return replies.end(); }
  [[nodiscard]] std::size_t size() const noexcept { return replies.size(); }
};
template <class Answer>
using Replies = Result<MemberReplies<Answer>>;

}  // namespace lrpc

namespace lrpc::client {

/// A member's reply on the A-stack, as what takes results sees it. Unlike a Call's, its failure is not the call's end.
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

/// A call to all members of a group, from its arguments to what each has answered. Blocks and ends as invoke().
/// Errors: those of invoke(), where too few answers give the error of one member, or call_failed; not_supported (the
/// binding is not to a group); system_error (no memory for the replies; the call may have been executed).
template <class P, class... A>
[[gnu::cold, gnu::noinline]] Replies<typename P::Result_> invoke_all(BindingObject& object, A... arguments) noexcept {
  if (const Refusal refusal = check_arguments<P>(arguments...); refusal.what != nullptr)
    return refused(refusal.code, refusal.what);
  if (!object.remote()) return Errc::not_supported;
  RemoteCall call(object, P::kProcedure_.astack_class);
  if (!call.taken()) return call.error();
  push_arguments<P>(call, arguments...);
  RemotePath& path = *object.remote_path();
  auto replies = path.call_all(P::kProcedure_.procedure, call.linkage());
  if (!replies) return replies.error();
  const Errc failure = replies->status() == 0 ? Errc::ok : Call::failure(replies->status());
  MemberReplies<typename P::Result_> collated{.replies = {}, .members = replies->members()};
  try {
    while (const auto reply = replies->next()) {
      const std::uint16_t status =
          path.put_reply(P::kProcedure_.procedure, call.linkage(), reply->status, reply->image);
      auto result = P{}(status, CollatedReply(object, call));
      if (failure == Errc::call_failed && !result && result.code() != Errc::call_failed &&
          result.code() != Errc::raised)
        return result.error();
      collated.replies.push_back({{reply->host}, std::move(result)});
    }
  } catch (const std::bad_alloc&) {
    return Errc::system_error;
  }
  if (failure != Errc::ok) return failure;
  if (replies->damaged()) return Errc::call_failed;
  return collated;
}

}  // namespace lrpc::client
