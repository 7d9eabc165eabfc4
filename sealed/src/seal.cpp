// Sealing the calling process.
#include <fcntl.h>
#include <unistd.h>

#include <cerrno>

#include "filter.h"
#include "lrpc/detail/sandbox/threads.h"
#include "lrpc/detail/shim/binder/bell.h"
#include "lrpc/detail/shim/system/cancellation.h"
#include "lrpc/sealed.h"

namespace lrpc {
namespace {

/// The descriptor that the filter lets us send on gets a free number from here on. Once sealed, the process cannot give
/// that number to another descriptor.
constexpr int kFirstSendFd = 200;

}  // namespace

Status seal(Binding& binding, const SealOptions& options) {
  const shim::NoCancellation never;
  client::BindingObject& object = detail::StubAccess::object(binding);
  if (object.gate() != Gate::trap) return Error{Errc::invalid_argument, "seal: import the binding with Gate::trap"};
  if (object.sealed()) return Error{Errc::invalid_argument, "seal: this domain is sealed already"};
  // The filter applies to the calling thread only: a filter with a listener cannot be installed on the others, too.
  if (const Status alone = sandbox::check_only_thread(); !alone)
    return Error{alone.code(), "seal: " + alone.error().message() + ", and only one can be sealed"};
  UniqueFd send_on(fcntl(object.bell(), F_DUPFD_CLOEXEC, kFirstSendFd));
  if (!send_on) return system_error("seal: dup of the bell", errno);
  const auto refuse = options.kill_on_refusal ? sealed::Refuse::kill : sealed::Refuse::error;
  auto filter = sealed::make_filter(refuse, options.allow, send_on.get());
  if (!filter) return filter.error();

  const int installed = sealed::install_filter(filter->data(), filter->size());
  if (installed < 0) return sealed::why_not_installed(-installed);
  const UniqueFd listener(installed);
  // Our copy of the listener closes on return: so traps fail instead of waiting when the server closes its copy. Do not
  // wait for room on the bell: the filter forbids poll(2), and we have sent nothing that could fill it.
  if (Status sent = shim::offer_on_bell(send_on.get(), shim::BellMessage::trap, listener.get(), kDoNotWait); !sent)
    return sent;
  object.set_sealed();
  return {};
}

}  // namespace lrpc
