#include "served_binding.h"

#include <sys/socket.h>

#include <utility>

#include "lrpc/shim/gates.h"
#include "lrpc/shim/step.h"

namespace lrpc::server {

namespace {

std::vector<EntryPoint> entry_points(const ServedInterface& interface) {
  std::vector<EntryPoint> entries;
  for (std::size_t i = 0; i < interface.stubs.size(); ++i) {
    const ProcedureDescriptor& procedure = interface.pdl->procedures[i];
    entries.push_back({interface.stubs[i], procedure.astack_class, procedure.may_block});
  }
  return entries;
}

template <class Decision>
Status decide(Decision&& decision) {
  Status decided = Error{Errc::not_permitted, "its authorisation threw an exception"};
  call_program([&] { decided = decision(); });
  if (decided) return decided;
  Error error = decided.error();
  return Error{Errc::not_permitted, "the server's clerk refused: " + error.message()};
}

}  // namespace

Status authorise(const ServedInterface& interface, const shim::Credentials& client) {
  if (!interface.options.authorise) return {};
  return decide([&] { return interface.options.authorise(client); });
}

Status authorise(const ServedInterface& interface, const shim::Principal& principal) {
  if (interface.options.authorise_remote) return decide([&] { return interface.options.authorise_remote(principal); });
  if (!interface.options.authorise) return {};
  // Who decides by user and group has not said what to do about those who have none here.
  return Error{Errc::not_permitted,
               "the server's clerk refused: it knows callers of this machine only (authorise_remote)"};
}

ServedBinding::ServedBinding(ServedParts parts)
    : entries(entry_points(*parts.interface)),
      parts_(std::move(parts)),
      astacks_(parts_.region.layout().astack_count()),
      callback_port_(parts_.client.pid, parts_.interface->pdl->callback != nullptr) {
  for (std::uint32_t i = 0; i < astacks_.size(); ++i) {
    const shim::AStack placed = parts_.region.astack(i);
    astacks_[i].head = placed.head;
    astacks_[i].image = placed.image;
    astacks_[i].tail = placed.tail;
    astacks_[i].astack_class = placed.astack_class;
    astacks_[i].binding = this;
    astacks_[i].entries = entries.data();
    astacks_[i].impl = parts_.interface->impl;
    astacks_[i].entry_count.store(static_cast<std::uint32_t>(entries.size()), std::memory_order_relaxed);
  }
}

bool ServedBinding::revoke() noexcept {
  if (revoked_.exchange(true, std::memory_order_seq_cst)) return false;
  LRPC_STEP("T18");
  (void)inline_left.load(std::memory_order_acquire);
  for (ServedAStack& astack : astacks_) astack.entry_count.store(0, std::memory_order_release);
  // T18
  for (ServedAStack& astack : astacks_) shim::revoke_word(*astack.head, shim::Sleeper::estack);
  // Not close alone: a fork child of ours may hold the socket, and the client must see that nobody serves it any more.
  ::shutdown(parts_.bell.get(), SHUT_RDWR);
  callback_port_.close();
  return true;
}

}  // namespace lrpc::server
