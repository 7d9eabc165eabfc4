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

/// Until told to stop, or there is no more room.
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
  auto record = Shared<TimelineRecord>::create();
  if (!record) return record.error();
  std::unique_ptr<TimelineClient> client(new TimelineClient(std::move(*record)));
  client->record_->turns.prepare();
  auto call = make_lrpc_call(std::move(domains), shim::Gate::adaptive, LrpcTest::null);
  if (!call) return call.error();
  client->call_ = std::move(*call);
  auto process = Child::spawn("bench-client", seat, [&]() -> int {
    const Status ready = client->call_->connect();
    client->record_->turns.serve(ready, [&]() -> Status {
      warm_up(*client->call_, clock);
      record_calls(*client->call_, clock, *client->record_);
      return client->call_->health();
    });
  });
  if (!process) return process.error();
  client->process_ = std::move(*process);
  TurnDesk* const turns = &client->record_->turns;
  if (auto connected = await_turns({&turns, 1}, {}); !connected) return connected.error();
  return client;
}

Status TimelineClient::stop() {
  record_->stop.store(true, std::memory_order_relaxed);
  TurnDesk* const turns = &record_->turns;
  return await_turns({&turns, 1}, {});
}

}  // namespace lrpc::bench
