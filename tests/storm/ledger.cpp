#include "ledger.h"

#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <ctime>

namespace lrpc::storm {
namespace {

Ledger* the_ledger = nullptr;
Place* own_place = nullptr;

/// A thread's entry in its process's Place; freed when the thread ends.
struct Entry {
  Entry() noexcept {
    if (own_place == nullptr) return;
    for (Waiting& one : own_place->threads) {
      if (one.thread.load(std::memory_order_relaxed) != 0) continue;
      int free = 0;
      if (!one.thread.compare_exchange_strong(free, static_cast<int>(syscall(SYS_gettid)))) continue;
      waiting = &one;
      return;
    }
    complain("has more threads that call than are looked after");
  }
  ~Entry() {
    if (waiting == nullptr) return;
    waiting->since.store(0);
    waiting->thread.store(0);
  }
  Waiting* waiting = nullptr;
};

thread_local std::uint64_t block_next = 0;
thread_local std::uint64_t block_end = 0;
thread_local std::uint32_t block_round = 0;

}  // namespace

const char* name_of(Role role) noexcept {
  switch (role) {
    case Role::none: return "nobody";
    case Role::client: return "client";
    case Role::sealed_client: return "sealed client";
    case Role::server: return "server";
    case Role::survivor_client: return "surviving client";
    case Role::survivor_server: return "surviving server";
    case Role::nameserver: return "lrpcd";
    case Role::network_domain: return "lrpc-netd";
    case Role::newcomer: return "newcomer";
  }
  return "?";
}

void make_ledger() {
  void* const memory =
      mmap(nullptr, sizeof(Ledger), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) {
    std::perror("lrpc-storm: mmap");
    std::exit(2);
  }
  the_ledger = static_cast<Ledger*>(memory);
}

Ledger& ledger() noexcept { return *the_ledger; }
void take_place(std::size_t number) noexcept { own_place = &the_ledger->places[number]; }
Place& place() noexcept { return *own_place; }

std::uint64_t monotonic_ns() noexcept {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<std::uint64_t>(now.tv_sec) * 1'000'000'000 + static_cast<std::uint64_t>(now.tv_nsec);
}

void complain(const char* format, ...) noexcept {
  const std::uint32_t number = the_ledger->complained.fetch_add(1);
  if (number >= kMostComplaints) return;
  Complaint& complaint = the_ledger->complaints[number];
  int used = 0;
  if (own_place != nullptr) {
    used = std::snprintf(complaint.text, sizeof complaint.text, "%s %d: ", name_of(own_place->role.load()), getpid());
  }
  va_list arguments;
  va_start(arguments, format);
  std::vsnprintf(complaint.text + used, sizeof complaint.text - static_cast<std::size_t>(used), format, arguments);
  va_end(arguments);
  complaint.ready.store(true, std::memory_order_release);
}

std::uint64_t new_call() noexcept {
  const std::uint32_t round = the_ledger->round.load(std::memory_order_relaxed);
  if (block_next == block_end || block_round != round) {
    block_round = round;
    const std::uint64_t block = the_ledger->next_call.fetch_add(kCallsOfBlock);
    if (block + kCallsOfBlock > kMostCalls) {
      block_next = block_end = 0;
      return kMostCalls;
    }
    the_ledger->callers[block / kCallsOfBlock].store(getpid(), std::memory_order_relaxed);
    block_next = block;
    block_end = block + kCallsOfBlock;
  }
  return block_next++;
}

void execute(std::uint64_t call) noexcept {
  if (call >= kMostCalls || the_ledger->fates[call].load() == Fate::none) {
    complain("executes call %llu, which nobody has made", static_cast<unsigned long long>(call));
    return;
  }
  const auto before = the_ledger->executed[call].fetch_add(1);
  if (before != 0) {
    complain("executes call %llu of process %d for the second time", static_cast<unsigned long long>(call),
             the_ledger->callers[call / kCallsOfBlock].load());
  }
}

InCall::InCall(const char* what, std::uint64_t call, const void* binding) noexcept {
  thread_local Entry entry;
  waiting_ = entry.waiting;
  if (waiting_ == nullptr) return;
  outer_since_ = waiting_->since.load(std::memory_order_relaxed);
  if (outer_since_ != 0) return;  // only the outer wait is watched
  waiting_->call.store(call, std::memory_order_relaxed);
  waiting_->what.store(what, std::memory_order_relaxed);
  waiting_->binding.store(binding, std::memory_order_relaxed);
  waiting_->since.store(monotonic_ns(), std::memory_order_release);
}

InCall::~InCall() {
  if (waiting_ != nullptr && outer_since_ == 0) waiting_->since.store(0, std::memory_order_release);
}

}  // namespace lrpc::storm
