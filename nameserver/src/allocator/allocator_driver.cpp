#include "allocator_driver.h"

#include <fcntl.h>
#include <time.h>

#include <utility>

namespace lrpc::nameserver {

using shim::AllocatorRuling;

AllocatorDriver::AllocatorDriver(EventLoop& loop, std::chrono::milliseconds tick, bool always, MachineLoadSource load)
    : loop_(loop), tick_(tick), always_(always), load_(std::move(load)) {}

Result<UniqueFd> AllocatorDriver::add(Allocator::DomainId id, const shim::Credentials& server) {
  auto fd = shim::create_allocator_page();
  if (!fd) return fd;
  UniqueFd own(::fcntl(fd->get(), F_DUPFD_CLOEXEC, 0));
  if (!own) return system_error("dup of an allocator's page", errno);
  auto made = std::make_unique<Server>();
  if (auto mapped = made->page.put(std::move(own)); !mapped) return mapped.error();
  clockid_t clock{};
  if (server.pid > 0 && ::clock_getcpuclockid(server.pid, &clock) == 0) made->clock = clock;
  AllocatorRuling& ruling = made->page->ruling;
  ruling.epoch.store(epoch_, std::memory_order_relaxed);
  ruling.word.store(asleep_.load() ? AllocatorRuling::kAsleep : AllocatorRuling::kNone, std::memory_order_seq_cst);
  servers_.insert_or_assign(id, std::move(made));  // first: remove() goes by it, also where the rest had no memory
  policy_.add(id, server.uid);
  pages_.store(static_cast<std::uint32_t>(servers_.size()));
  return fd;
}

void AllocatorDriver::remove(Allocator::DomainId id) {
  if (servers_.erase(id) == 0) return;
  policy_.remove(id);
  pages_.store(static_cast<std::uint32_t>(servers_.size()));
  granted_.store(policy_.granted());
}

std::vector<Allocator::Look> AllocatorDriver::look() const {
  std::vector<Allocator::Look> looks;
  looks.reserve(servers_.size());
  for (const auto& [id, server] : servers_) {
    Allocator::Look one{.id = id, .counters = shim::copy_counters(server->page->counters), .processor_time = {}};
    timespec used{};
    if (server->clock && ::clock_gettime(*server->clock, &used) == 0)
      one.processor_time = std::chrono::seconds(used.tv_sec) + std::chrono::nanoseconds(used.tv_nsec);
    looks.push_back(one);
  }
  return looks;
}

void AllocatorDriver::wake() {
  if (!asleep_.load()) return;
  // First what needs memory: if that throws, we stay asleep and have set no timer.
  (void)load_();  // the load counts from now on
  policy_.begin(look());
  schedule();
  asleep_.store(false);
  for (const auto& [id, server] : servers_)
    server->page->ruling.word.store(AllocatorRuling::kNone, std::memory_order_relaxed);
}

void AllocatorDriver::schedule() {
  const EventLoop::TimerId next = loop_.after(tick_, [this] { tick(); });
  loop_.cancel(timer_);  // a timer whose handler had no memory fires again
  timer_ = next;
}

void AllocatorDriver::tick() {
  if (asleep_.load()) return wake();  // there was no memory for it at the last tick
  ticks_.fetch_add(1);
  const std::vector<Allocator::Look> looks = look();
  const auto load = load_();
  if (!load) return fall_asleep(looks);  // without the load, every server follows its own rule
  policy_.tick(looks, *load);
  if (servers_.empty() || policy_.nothing_to_do()) return fall_asleep(looks);
  rule();
  schedule();
}

void AllocatorDriver::rule() {
  const bool rules = always_ || policy_.contended();
  for (const auto& [id, server] : servers_) {
    const auto pollers = rules ? policy_.ruling(id) : std::nullopt;
    const std::uint32_t word = pollers ? AllocatorRuling::of(*pollers) : AllocatorRuling::kNone;
    server->page->ruling.word.store(word, std::memory_order_relaxed);
  }
  granted_.store(policy_.granted());
}

void AllocatorDriver::fall_asleep(const std::vector<Allocator::Look>& seen) {
  asleep_.store(true);
  granted_.store(0);
  ++epoch_;
  for (const auto& [id, server] : servers_) {
    server->page->ruling.epoch.store(epoch_, std::memory_order_relaxed);
    server->page->ruling.word.store(AllocatorRuling::kAsleep, std::memory_order_seq_cst);
  }
  // A server may have counted a call before it could see that we sleep, and would then not wake us: look once more.
  std::atomic_thread_fence(std::memory_order_seq_cst);
  for (std::size_t i = 0; const auto& [id, server] : servers_) {
    const shim::CountersCopy now = shim::copy_counters(server->page->counters);
    const shim::CountersCopy& then = seen[i++].counters;
    if (now.hot_calls != then.hot_calls || now.hits != then.hits) return wake();
  }
}

AllocatorStatistics AllocatorDriver::statistics() const {
  return {.pages = pages_.load(), .granted = granted_.load(), .ticks = ticks_.load(), .asleep = asleep_.load()};
}

}  // namespace lrpc::nameserver
