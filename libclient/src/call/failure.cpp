// The errors of failed calls, and their texts. Off the call path: only failed calls run this.
#include <string>
#include <string_view>
#include <utility>

#include "lrpc/detail/client/call/call.h"
#include "lrpc/detail/shim/binder/told_text.h"

namespace lrpc::client {
namespace {

/// "HEAD: WHAT", or "WHAT" without a head; without memory, no text.
detail::Failure with_text(Errc code, std::string_view head, std::string_view what) noexcept try {
  Error error{code, {}};
  error.text.reserve(head.size() + 2 + what.size());
  if (!head.empty()) error.text.append(head).append(": ");
  error.text.append(what);
  return detail::Failure(std::move(error));
} catch (...) {
  return code;
}

}  // namespace

detail::Failure refused(Errc code, const char* what) noexcept {
  switch (code) {
    case Errc::argument_too_long: return with_text(code, "argument too long", what);
    case Errc::result_too_long: return with_text(code, "result too long", what);
    default: return with_text(code, describe(code), what);
  }
}

detail::Failure not_copied(Errc code, const char* what) noexcept {
  if (code != Errc::result_too_long) return code;
  return refused(code, what);
}

Errc why_failed(const BindingObject& binding, std::uint16_t status) noexcept {
  const Errc code = Call::failure(status);
  const bool of_network = code == Errc::binding_revoked || code == Errc::message_too_long || code == Errc::call_lost;
  return of_network && !binding.remote() ? Errc::call_failed : code;
}

detail::Failure failure_of(const BindingObject& binding, const shim::LinkageRecord& linkage, std::uint16_t status,
                           const char* procedure) noexcept {
  const Errc code = why_failed(binding, status);
  if (shim::call_status::told(status)) {
    const shim::ToldText told = shim::take_told(shim::told_room(linkage.astack.image, linkage.astack.limit));
    if (told.size != 0) return with_text(code, {}, told.view());
  }
  switch (code) {
    case Errc::argument_out_of_range:
    case Errc::argument_too_long:
    case Errc::bad_handle:
    case Errc::bad_result:
    case Errc::exception_escaped: return with_text(code, describe(code), procedure);
    default: return code;
  }
}

detail::Failure end_failed(BindingObject& binding, AStackList::Lease* lease, shim::LinkageRecord& linkage,
                           std::uint16_t status, const char* procedure) noexcept {
  detail::Failure failure = failure_of(binding, linkage, status, procedure);
  shim::calling_thread.linkages = linkage.below;
  if (linkage.quarantined) {
    quarantine_astack(binding, linkage);
  } else {
    binding.astacks(linkage.astack.astack_class).put(lease, linkage);
  }
  return failure;
}

}  // namespace lrpc::client
