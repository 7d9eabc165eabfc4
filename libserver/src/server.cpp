#include "lrpc/detail/server/server.h"

#include <algorithm>
#include <utility>

#include "call/stack.h"
#include "clerk/domain.h"
#include "lrpc/detail/shim/binder/peer_socket.h"
#include "lrpc/detail/shim/system/cancellation.h"

namespace lrpc {
namespace {

/// Whether the stacks that procedures run on have room for the one of the interface that needs most.
Status check_stack(const Pdl& pdl, std::size_t estack_size) {
  const auto largest = std::ranges::max_element(pdl.procedures, {}, &ProcedureDescriptor::stack_need);
  if (largest == pdl.procedures.end()) return {};
  const std::size_t least = server::kProcedureRoom + largest->stack_need;
  if (estack_size >= least) return {};
  std::string text(pdl.interface.name);
  text.append(".").append(largest->name).append(" may take ").append(std::to_string(largest->stack_need));
  text.append(" bytes of stack for its arguments and results; set ServerOptions::estack_size to ");
  text.append(std::to_string(least)).append(" or more, it is ").append(std::to_string(estack_size));
  return Error{Errc::invalid_argument, std::move(text)};
}

/// In a fork child nothing of a server is left: no thread, no region, and perhaps not the thread that holds its locks.
Status check_process(server::Domain& domain) {
  if (!domain.watcher().inert()) return {};
  return Error{Errc::not_supported, "a server does not survive fork"};
}

Result<std::shared_ptr<server::ServedInterface>> describe_interface(server::Domain& domain, const Pdl& pdl,
                                                                    std::span<const EntryStub> stubs, const void* impl,
                                                                    ExportOptions options) {
  if (Status ours = check_process(domain); !ours) return ours.error();
  if (!domain.options_checked()) return domain.options_checked().error();
  if (stubs.size() != pdl.procedures.size())
    return Error{Errc::invalid_argument, "as many entry stubs as procedures, please"};
  if (impl == nullptr) return Error{Errc::invalid_argument, "an export without an implementation"};
  if (Status fits = check_stack(pdl, domain.options().estack_size); !fits) return fits.error();
  if (options.scheduling) {
    if (Status allowed = shim::can_schedule(*options.scheduling); !allowed) return allowed.error();
  }
  auto interface = std::make_shared<server::ServedInterface>();
  interface->pdl = &pdl;
  interface->stubs = stubs;
  interface->impl = const_cast<void*>(impl);  // the stubs know its type
  interface->options = std::move(options);
  interface->lay_out_entries();
  return interface;
}

}  // namespace

Server::Server(ServerOptions options) : domain_(std::make_unique<server::Domain>(std::move(options))) {}
Server::Server(Server&&) noexcept = default;
Server::~Server() {
  const shim::NoCancellation never;
  // In a fork child there are no threads to stop and no bindings to end: nothing of the domain is ours. And a procedure
  // may call exit(3), which destroys static objects: then this must not wait for that procedure.
  const bool left = domain_ == nullptr || domain_->watcher().inert() || domain_->abandon();
  // The pointer stays until the domain is gone: a hook that this waits for may call this server.
  if (!left) domain_.get_deleter()(domain_.get());
  (void)domain_.release();
}

Result<ExportId> Server::export_interface(std::string name, const Pdl& pdl, std::span<const EntryStub> stubs,
                                          const void* impl, ExportOptions options) {
  const shim::NoCancellation never;
  auto interface = describe_interface(*domain_, pdl, stubs, impl, std::move(options));
  if (!interface) return interface.error();
  return domain_->clerk().export_interface(std::move(name), *std::move(interface));
}

Status Server::withdraw(ExportId id) {
  const shim::NoCancellation never;
  if (Status ours = check_process(*domain_); !ours) return ours;
  return domain_->clerk().withdraw(id);
}

Status Server::serve_over(UniqueFd socket, const Pdl& pdl, std::span<const EntryStub> stubs, const void* impl,
                          ExportOptions options) {
  const shim::NoCancellation never;
  // The peer may have sent anything over it already, so only PeerSocket may close it, whatever is returned.
  shim::Stranger peer = shim::stranger_at(socket.get());
  shim::PeerSocket served(std::move(socket), shim::PeerSocket::Made::here, std::move(peer));
  auto interface = describe_interface(*domain_, pdl, stubs, impl, std::move(options));
  if (!interface) return interface.error();
  return domain_->private_sockets().serve_over(std::move(served), *std::move(interface));
}

void Server::end_binding(std::uint64_t binding_id) {
  const shim::NoCancellation never;
  if (!check_process(*domain_)) return;
  domain_->bindings().end(binding_id);
  domain_->bindings().wait_until_ended(binding_id);
}

ServerStatistics Server::statistics() const {
  return check_process(*domain_) ? domain_->statistics() : ServerStatistics();
}

}  // namespace lrpc
