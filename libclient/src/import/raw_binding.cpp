#include "lrpc/raw_binding.h"

#include <cstring>
#include <vector>

#include "answer_slack.h"
#include "call/transfer.h"
#include "import.h"
#include "lrpc/detail/client/call/call_scope.h"
#include "lrpc/detail/client/call/pending.h"
#include "lrpc/detail/shim/binder/ask_nameserver.h"
#include "lrpc/detail/shim/binder/told_text.h"
#include "lrpc/detail/shim/system/cancellation.h"

namespace lrpc::client {
namespace {

using shim::PackedShape;

Error no_name() { return {Errc::invalid_argument, "that is no name that could be exported"}; }

/// Asks the nameserver for the export of this name, with the server's own procedure descriptors.
Result<shim::Described> ask(int socket, std::string_view name) {
  return shim::ask_nameserver<shim::Described>(socket, shim::DescribeRequest{std::string(name)}, answer_slack);
}

/// Returns the status of a failed call and, if the server's program has given a reason, writes its text into `results`.
std::uint16_t fail_with_text(const shim::AStack& astack, std::uint16_t status, std::span<std::byte> results,
                             std::size_t& size) noexcept {
  if (!shim::call_status::told(status)) return status;
  const shim::ToldText told = shim::take_told(shim::told_room(astack.image, astack.limit));
  if (told.size == 0 || told.size > results.size())
    return static_cast<std::uint16_t>(status & ~shim::call_status::kTold);
  std::memcpy(results.data(), told.bytes.data(), told.size);
  size = told.size;
  return status;
}

}  // namespace

Result<shim::Described> RawBinding::describe(std::string_view name, const ImportOptions& options) {
  const shim::NoCancellation never;
  if (!shim::valid_name(name)) return no_name();
  auto socket = shim::connect_nameserver(options.nameserver);
  if (!socket) return socket.error();
  return ask(socket->get(), name);
}

Result<RawBinding> RawBinding::import(std::string_view name, const InterfaceId& interface,
                                      const std::optional<shim::Principal>& principal, const ImportOptions& options) {
  const shim::NoCancellation never;
  if (!shim::valid_name(name)) return no_name();
  auto socket = shim::connect_nameserver(options.nameserver);
  if (!socket) return socket.error();
  std::vector<AStackClass> classes;
  auto binding = bind(socket->get(), name, {interface, {}, principal, false}, options, &classes);
  if (!binding) return binding.error();
  // Bind first: a client that may not bind learns nothing. If another server has the name by now, the hash still shows
  // that the descriptors belong to this interface, and the check against `classes` below that they fit this region.
  auto described = ask(socket->get(), name);
  if (!described) return described.error();
  if (Status same = shim::compatible(interface, described->interface.view()); !same) return same.error();
  if (described->descriptors.empty()) {
    return Error{Errc::not_supported,
                 "'" + std::string(name) + "' has too many procedures to be called from other hosts"};
  }
  auto descriptors = shim::ReceivedDescriptors::decode(
      std::as_bytes(std::span(described->descriptors.data(), described->descriptors.size())), classes);
  if (!descriptors) return descriptors.error();
  return RawBinding(*std::move(binding), *std::move(descriptors));
}

std::uint16_t RawBinding::call(std::uint16_t procedure, std::span<const std::byte> arguments,
                               std::span<std::byte> results, std::size_t& size,
                               std::chrono::milliseconds limit) noexcept {
  size = 0;
  if (procedure >= procedures().size()) return failed(Errc::bad_procedure);
  const ProcedureDescriptor& descriptor = procedures()[procedure];
  const CallScope scope(limit);
  // A synchronous Call, not a started one: while it waits for the return, it may yield its processor.
  Call call(detail::StubAccess::object(binding_), descriptor.astack_class);
  if (!call.taken()) return failed(call.error());
  const shim::AStack& astack = call.linkage().astack;
  if (astack.tail != nullptr) (void)call.tail();
  if (!unpack(PackedShape::of_call(descriptor), arguments, astack)) return failed(Errc::argument_out_of_range);
  std::uint16_t status = call.transfer(procedure);
  // Report what a stub would report. A server may return any status, but no_astack and binding_revoked from here must
  // mean that it was not called.
  if ((status & shim::call_status::kFailed) != 0)
    status = static_cast<std::uint16_t>(failed(why_failed(detail::StubAccess::object(binding_), status)) |
                                        (status & shim::call_status::kTold));
  const auto shape = PackedShape::of_status(descriptor, status);
  if (!shape && (status & shim::call_status::kFailed) == 0) return failed(Errc::call_failed);
  if (!shape) return fail_with_text(astack, status, results, size);
  const auto packed = pack(*shape, astack, results);
  if (!packed) return failed(Errc::bad_result);
  size = *packed;
  return status;
}

std::uint16_t RawBinding::send(std::uint16_t procedure, std::span<const std::byte> arguments,
                               std::chrono::milliseconds limit) noexcept {
  if (procedure >= procedures().size()) return failed(Errc::bad_procedure);
  const ProcedureDescriptor& descriptor = procedures()[procedure];
  const CallScope scope(limit);
  PendingCall call(detail::StubAccess::object(binding_), descriptor.astack_class);
  if (!call.taken()) return failed(call.error());
  if (!unpack(PackedShape::of_call(descriptor), arguments, call.placed())) {
    call.put_back();
    return failed(Errc::argument_out_of_range);
  }
  if (!call.ring(procedure, descriptor.may_block)) return failed(call.error());
  call.leave();
  return 0;
}

void RawBinding::end() noexcept {
  const shim::NoCancellation never;
  detail::StubAccess::object(binding_).end();
}

}  // namespace lrpc::client
