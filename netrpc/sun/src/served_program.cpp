#include "served_program.h"

#include <algorithm>
#include <new>
#include <thread>

#include "lrpc/detail/shim/call/call_word.h"
#include "lrpc/stubgen/layout/compile.h"
#include "lrpc/stubgen/layout/xdr_subset.h"

namespace lrpc::sun {
namespace {

/// The most bytes that a call returns: what the longest record over TCP carries, and the padding between values in an
/// image.
constexpr std::size_t kLongestReturn = 2 * 1024 * 1024;
/// The server notices within these pauses, each twice as long as the last, that a binding has ended.
constexpr std::chrono::milliseconds kFirstPause{1};
constexpr std::chrono::milliseconds kLastPause{64};
/// For so long after an ousting that gave no room, none is tried: the server may refuse that one host.
constexpr std::chrono::seconds kOustAgain{10};

constexpr bool failed_with(std::uint16_t status, Errc code) noexcept {
  return (status & shim::call_status::kFailed) != 0 &&
         static_cast<Errc>(status & ~(shim::call_status::kFailed | shim::call_status::kTold)) == code;
}

/// Whether such an error of an import is about the host that imports, and says nothing of others.
constexpr bool is_about_one_host(Errc code) noexcept {
  return code == Errc::not_permitted || code == Errc::limit_reached;
}

}  // namespace

std::size_t ServedProgram::Work::kept() const noexcept {
  return arguments.capacity() + scratch.image.capacity() +
         scratch.windows.capacity() * sizeof(std::span<const std::byte>) + packed.capacity() + room +
         results.bytes().capacity();
}

Errc ServedProgram::call(const shim::Principal& from, std::uint32_t number, std::span<const std::byte> arguments,
                         Clock::time_point deadline, Work& work) noexcept try {
  for (int tries = 0;; ++tries) {
    std::shared_ptr<Bound> bound = find(from);
    if (bound == nullptr) {
      auto made = bind(from, deadline);
      if (!made) {
        if (made.code() == Errc::name_unknown) return Errc::name_unknown;
        // Perhaps another interface was exported between describe() and the import.
        if ((made.code() == Errc::hash_mismatch || made.code() == Errc::version_mismatch) && tries == 0) continue;
        complain(made.error().message());
        return Errc::call_failed;
      }
      bound = *std::move(made);
    }
    const Errc outcome = call_through(*bound, number, arguments, deadline, work);
    if (!bound->binding.revoked()) return outcome;
    drop(from, bound);
    // The first two: the call has run, or may have. Otherwise the declaration of a server that has ended was used: try
    // again.
    if (outcome == Errc::ok || outcome == Errc::call_failed || tries > 0)
      return outcome == Errc::binding_revoked ? Errc::call_failed : outcome;
  }
} catch (const std::bad_alloc&) {
  return Errc::call_failed;
}

Errc ServedProgram::call_through(Bound& bound, std::uint32_t number, std::span<const std::byte> arguments,
                                 Clock::time_point deadline, Work& work) {
  const auto& procedures = bound.interface->procedures;
  if (number == 0 || number > procedures.size()) return Errc::bad_procedure;
  const auto index = static_cast<std::uint16_t>(number - 1);
  static_assert(stubgen::xdr_number(0) == 1);
  const stubgen::Procedure& procedure = procedures[index];
  if (!stubgen::why_not_in_xdr(procedure).empty()) return Errc::bad_procedure;
  if (!pack_arguments(procedure, arguments, work.scratch, work.packed)) return Errc::argument_out_of_range;

  work.results.clear();
  const auto limit = std::chrono::duration_cast<std::chrono::milliseconds>(deadline - Clock::now());
  if (limit.count() <= 0) return Errc::call_failed;
  std::uint16_t status = 0;
  std::size_t size = 0;
  if (procedure.one_way) {
    status = bound.binding.send(index, work.packed, limit);
  } else {
    const std::uint64_t most = shim::most_returned(bound.binding.procedures()[index]);
    // A text that comes with a failure is received, too, and not passed on: Sun RPC has no place for it.
    if (const std::size_t room = std::min<std::uint64_t>(most, kLongestReturn); work.room < room) {
      work.room = 0;
      work.returned = std::make_unique_for_overwrite<std::byte[]>(room);
      work.room = room;
    }
    status = bound.binding.call(index, work.packed, {work.returned.get(), work.room}, size, limit);
  }
  if (failed_with(status, Errc::binding_revoked)) return Errc::binding_revoked;
  const bool returned =
      (status & shim::call_status::kFailed) == 0 &&
      unpack_results(procedure, status, std::span(work.returned.get(), size), work.scratch, work.results);
  return returned ? Errc::ok : Errc::call_failed;
}

// ---- bindings ----

std::shared_ptr<ServedProgram::Bound> ServedProgram::find(const shim::Principal& from) {
  const std::lock_guard lock(mutex_);
  const auto found = bindings_.find(from);
  if (found == bindings_.end()) return nullptr;
  found->second->used = Clock::now();
  found->second->again = true;
  return found->second;
}

/// If a server answers no import, the first caller waits for it; those behind it share the failure and do not wait
/// again.
Result<std::shared_ptr<ServedProgram::Bound>> ServedProgram::bind(const shim::Principal& from,
                                                                  Clock::time_point deadline) {
  {
    std::unique_lock lock(mutex_);
    while (importing_) {
      const std::uint64_t before = imports_;
      if (!imported_.wait_until(lock, deadline, [&] { return imports_ != before; }))
        return Error{Errc::timed_out, "another host's import of it takes too long"};
      if (!last_import_ && !is_about_one_host(last_import_.code())) return last_import_.error();
    }
    if (const auto known = bindings_.find(from); known != bindings_.end()) return known->second;
    importing_ = true;
  }
  Result<std::shared_ptr<Bound>> made = Errc::call_failed;
  Status outcome = Errc::call_failed;
  try {
    made = import_for(from);
    outcome = made ? Status() : Status(made.error());
  } catch (const std::bad_alloc&) {
  }
  std::shared_ptr<Bound> ousted;  // destroyed after the unlock: that may wait for the library's watcher
  const std::lock_guard lock(mutex_);
  importing_ = false;
  ++imports_;
  last_import_ = std::move(outcome);
  imported_.notify_all();
  if (!made) return made;
  if (bindings_.size() >= options_.max_bindings) ousted = oust_locked();
  bindings_.emplace(from, *made);
  return made;
}

/// An attacker can forge any number of addresses, each for one call. So if at least half of the bindings have served
/// one call only, the longest unused of these is ousted; otherwise the longest unused of the others. Null: there is
/// none.
std::shared_ptr<ServedProgram::Bound> ServedProgram::oust_locked() noexcept {
  const auto once = static_cast<std::size_t>(
      std::ranges::count_if(bindings_, [](const auto& one) { return !one.second->again.load(); }));
  const bool of_once = once != 0 && once >= bindings_.size() - once;
  auto oldest = bindings_.end();
  for (auto one = bindings_.begin(); one != bindings_.end(); ++one) {
    if (one->second->again == of_once) continue;
    if (oldest == bindings_.end() || one->second->used.load() < oldest->second->used.load()) oldest = one;
  }
  if (oldest == bindings_.end()) return nullptr;
  std::shared_ptr<Bound> ousted = std::move(oldest->second);
  bindings_.erase(oldest);
  return ousted;
}

/// If the server accepts no more bindings in all, gives up the binding of another host and tries again.
Result<client::RawBinding> ServedProgram::import_in_turn(const InterfaceId& interface, const shim::Principal& from,
                                                         const ImportOptions& import) {
  auto binding = client::RawBinding::import(options_.name, interface, from, import);
  if (binding || binding.code() != Errc::limit_reached) return binding;
  {
    std::unique_lock lock(mutex_);
    const std::shared_ptr<Bound> ousted = Clock::now() < may_oust_ ? nullptr : oust_locked();
    if (ousted == nullptr) return binding;
    may_oust_ = Clock::now() + kOustAgain;  // if this turns out to have been in vain
    lock.unlock();
  }
  for (auto pause = kFirstPause; pause <= kLastPause; pause *= 2) {
    std::this_thread::sleep_for(pause);
    binding = client::RawBinding::import(options_.name, interface, from, import);
    if (binding || binding.code() != Errc::limit_reached) break;
  }
  const std::lock_guard lock(mutex_);
  if (binding) may_oust_ = {};
  return binding;
}

Result<std::shared_ptr<ServedProgram::Bound>> ServedProgram::import_for(const shim::Principal& from) {
  const ImportOptions import{.nameserver = options_.nameserver};
  const auto described = client::RawBinding::describe(options_.name, import);
  if (!described) return described.error();
  if (Status learned = learn(*described); !learned) return learned.error();
  auto binding = import_in_turn(described->interface.view(), from, import);
  if (!binding) return binding.error();
  if (binding->procedures().size() != interface_->procedures.size())
    return Error{Errc::hash_mismatch, "it exports other procedures than it declares"};
  return std::make_shared<Bound>(*std::move(binding), interface_, Clock::now());
}

/// Compiles the declaration that is exported now, unless it is the last one. The text is the server's, and hostile; the
/// hash ensures that it is the declaration whose layout both sides of a binding use.
Status ServedProgram::learn(const shim::Described& described) {
  if (interface_ != nullptr && interface_->hash == described.interface.hash) return {};
  if (!refusal_ && refused_hash_ == described.interface.hash) return refusal_;
  const auto refused = [&](std::string why) {
    refused_hash_ = described.interface.hash;
    refusal_ = Error{Errc::interface_mismatch, std::move(why)};
    return refusal_;
  };
  stubgen::Diagnostics diagnostics;
  const stubgen::Source source{options_.name, described.text};
  auto interface = stubgen::compile(source, diagnostics, stubgen::Origin::server);
  if (!interface || interface->hash != described.interface.hash)
    return refused("its declaration makes no sense to this version of lrpc");
  if (interface->major != options_.version)
    return refused("its interface has version " + std::to_string(interface->major) +
                   ", and the Sun RPC program version " + std::to_string(options_.version));
  interface_ = std::make_shared<const stubgen::Interface>(*std::move(interface));
  return {};
}

void ServedProgram::drop(const shim::Principal& from, const std::shared_ptr<Bound>& bound) {
  const std::lock_guard lock(mutex_);
  const auto found = bindings_.find(from);
  if (found != bindings_.end() && found->second == bound) bindings_.erase(found);
}

void ServedProgram::sweep(Clock::time_point now) noexcept {
  for (;;) {
    std::shared_ptr<Bound> idle;  // destroyed after the unlock
    const std::lock_guard lock(mutex_);
    const auto found = std::ranges::find_if(
        bindings_, [&](const auto& one) { return now - one.second->used.load() > options_.forget; });
    if (found == bindings_.end()) return;
    idle = std::move(found->second);
    bindings_.erase(found);
  }
}

void ServedProgram::complain(const std::string& why) {
  {
    const std::lock_guard lock(mutex_);
    const Clock::time_point now = Clock::now();
    if (now < may_complain_) return;
    may_complain_ = now + kSilence;
  }
  if (options_.notice) options_.notice("'" + options_.name + "' cannot be called by Sun RPC: " + why);
}

}  // namespace lrpc::sun
