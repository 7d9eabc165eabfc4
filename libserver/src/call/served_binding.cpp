#include "served_binding.h"

#include <algorithm>
#include <new>

#include "clerk/secondary_regions.h"
#include "lrpc/detail/server/run.h"
#include "lrpc/detail/shim/call/step.h"
#include "lrpc/detail/shim/system/thread.h"

namespace lrpc::server {

namespace {

/// Stands in an A-stack class's table for the procedures of other classes: refuses the call.
std::uint16_t refuse_astack(void* /*impl*/, CallContext& /*context*/) { return failed(Errc::bad_procedure); }

template <class Decision>
Status decide(const ServedInterface& interface, std::string_view hook, Decision&& decision) {
  Status decided = Error{Errc::not_permitted, "the authorisation threw an exception"};
  call_hook(interface, hook, [&] { decided = decision(); });
  if (decided) return decided;
  Error error = decided.error();
  // limit_reached tells a client that it may try again later; every other error is a final refusal.
  const Errc code = error.code == Errc::limit_reached ? error.code : Errc::not_permitted;
  return Error{code, "not authorised: " + error.message()};
}

}  // namespace

void ServedInterface::lay_out_entries() {
  entries.clear();
  for (std::size_t astack_class = 0; astack_class < pdl->classes.size(); ++astack_class) {
    for (std::size_t i = 0; i < stubs.size(); ++i) {
      const ProcedureDescriptor& procedure = pdl->procedures[i];
      const bool here = procedure.astack_class == astack_class;
      entries.push_back({here ? stubs[i] : &refuse_astack, here && procedure.may_block});
    }
  }
}

Status authorise(const ServedInterface& interface, const shim::ClientCredentials& client) {
  if (!interface.options.authorise) return {};
  return decide(interface, "authorise", [&] { return interface.options.authorise(client); });
}

Status authorise(const ServedInterface& interface, const shim::Principal& principal) {
  if (interface.options.authorise_remote)
    return decide(interface, "authorise_remote", [&] { return interface.options.authorise_remote(principal); });
  if (!interface.options.authorise) return {};
  // A program that decides by user and group has not said what to do about callers that have none here.
  return Error{Errc::not_permitted, "not authorised: the server knows callers of this machine only (authorise_remote)"};
}

bool schedule_as_exported(const ServedInterface& interface) noexcept {
  if (!interface.options.scheduling) return false;
  // It was allowed at the export. If it is not any more, the thread serves with the scheduling that it has.
  try {
    (void)shim::schedule_this_thread(*interface.options.scheduling);
  } catch (const std::bad_alloc&) {  // the error's text
  }
  return true;
}

ServedBinding::ServedBinding(ServedParts parts)
    : parts_(std::move(parts)),
      bell_(std::move(parts_.bell), shim::PeerSocket::Made::here, stranger()),
      astacks_(parts_.region.layout().astack_count()),
      handles_(parts_.handles),
      callback_port_(parts_.client.pid, client_pidfd(), parts_.interface->pdl->callback != nullptr) {
  for (std::uint32_t i = 0; i < astacks_.size(); ++i) equip(astacks_[i], parts_.region.astack(i));
}

ServedBinding::~ServedBinding() {
  shim::take_over(shim::handover_place(id(), nullptr));
  parts_.unmapping.unmap(std::move(parts_.region));
}

void ServedBinding::equip(ServedAStack& astack, const shim::AStack& placed) noexcept {
  astack.head = placed.head;
  astack.limit = placed.limit;
  astack.image = placed.image;
  astack.tail = placed.tail;
  astack.astack_class = placed.astack_class;
  astack.binding = this;
  astack.entries = parts_.interface->entries_of(placed.astack_class);
  astack.impl = parts_.interface->impl;
  astack.entry_count.store(static_cast<std::uint32_t>(parts_.interface->stubs.size()), std::memory_order_relaxed);
}

bool ServedBinding::revoke() noexcept {
  if (revoked_.exchange(true, std::memory_order_seq_cst)) return false;
  LRPC_STEP("T18");
  for (ServedAStack& astack : astacks_) astack.entry_count.store(0, std::memory_order_release);
  // T18. An E-stack that is associated only now looks at the flag before it sleeps. So only A-stacks with an E-stack
  // need a futex wake; most have never had a call.
  for (ServedAStack& astack : astacks_) revoke_word_of(astack);
  {
    const std::lock_guard lock(secondary_mutex_);
    for (const auto& region : secondary_) region->close();
    for (const auto& region : secondary_) region->revoke_words();
  }
  // Not close(2) alone: a fork child may hold the socket, and the client must see that nobody serves it any more.
  bell_.hang_up();
  callback_port_.close();
  return true;
}

bool ServedBinding::settle() noexcept {
  if (grown_astacks.load() != 0 || !none_executes(astacks_)) return false;
  const auto place = shim::handover_place(id(), nullptr);
  shim::take_over(place);  // from its procedures
  parts_.share.give();
  parts_.unmapping.settle();
  if (gate() != shim::Gate::trap) {  // with the trap gate, the listener's thread may still sleep on the pidfd
    parts_.client_pidfd.reset();
    bell_.reset();
    parts_.descriptors.reset();
  }
  shim::hand_over(place);  // to the thread that releases the binding last
  return true;
}

// ---- Secondary A-stacks ----

bool ServedBinding::add(const std::shared_ptr<SecondaryRegion>& region) {
  const std::lock_guard lock(secondary_mutex_);
  if (revoked_.load(std::memory_order_seq_cst)) return false;  // G5: otherwise the revocation finds the region here
  const bool taken = std::ranges::any_of(secondary_, [&](const auto& one) { return one->place() == region->place(); });
  if (taken) return false;
  secondary_.push_back(region);
  return true;
}

bool ServedBinding::take_out(const SecondaryRegion& region) {
  std::shared_ptr<SecondaryRegion> last;  // released after the lock: it may unmap
  const std::lock_guard lock(secondary_mutex_);
  const auto found = std::ranges::find(secondary_, &region, [](const auto& one) { return one.get(); });
  if (found == secondary_.end()) return false;
  last = std::move(*found);
  secondary_.erase(found);
  return true;
}

}  // namespace lrpc::server
