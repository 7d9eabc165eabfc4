#include "timeline.h"

#include <algorithm>

#include "calls/lrpc_call.h"
#include "calls/lrpc_domains.h"

namespace lrpc::bench {
namespace {

void warm_up(Contender& call, const TickClock& clock) {
  const std::uint64_t begun = ticks_begin();
  for (int i = 0; i < 10'000 && ticks_begin() - begun < clock.ticks(std::chrono::milliseconds(300)); ++i) call.run(1);
}

/// Calls until told to stop, or until the record is full.
void record_calls(Contender& call, const TickClock& clock, TimelineRecord& record) {
  const std::uint64_t bucket_ticks = clock.ticks(TimelineRecord::kBucket);
  std::array<std::uint64_t, TimelineRecord::kCallsPerWindow> ticks{};
  record.begun = ticks_begin();
  while (!record.stop.load(std::memory_order_relaxed) && record.windows_used < record.windows.size()) {
    const std::uint64_t begun = ticks_begin();
    for (auto& one : ticks) {
      call.run_single({&one, 1});
      one -= std::min(one, clock.overhead());
      const std::uint64_t bucket = (ticks_begin() - record.begun) / bucket_ticks;
      if (bucket >= record.buckets.size()) return;
      record.buckets[bucket].add(one);
    }
    std::nth_element(ticks.begin(), ticks.begin() + ticks.size() / 2, ticks.end());
    record.windows[record.windows_used++] = {begun, ticks[ticks.size() / 2]};
  }
}

}  // namespace

Result<std::unique_ptr<TimelineClient>> TimelineClient::create(std::shared_ptr<LrpcDomains> domains, const Seat& seat,
                                                               const TickClock& clock) {
  auto call = make_lrpc_call(std::move(domains), shim::Gate::adaptive, LrpcTest::null);
  if (!call) return call.error();
  auto process = TurnTaker<TimelineRecord>::start(
      "bench-client", seat, [&] { return (*call)->connect(); },
      [&](TimelineRecord& record) {
        warm_up(**call, clock);
        record_calls(**call, clock, record);
        return (*call)->health();
      });
  if (!process) return process.error();
  if (auto connected = (*process)->turns.await(); !connected) return connected.error();
  return std::unique_ptr<TimelineClient>(new TimelineClient(*std::move(call), *std::move(process)));
}

Status TimelineClient::stop() {
  process_->stop.store(true, std::memory_order_relaxed);
  return process_->turns.await();
}

}  // namespace lrpc::bench
