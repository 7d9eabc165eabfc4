// The procedures of the storm's servers.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "caller.h"
#include "lrpc/server.h"
#include "storm.server.h"

namespace lrpc::storm {

/// Thread-safe. Each procedure first records its call in the ledger.
class Service {
 public:
  struct Counter {
    Counter(std::int64_t start, std::atomic<std::uint64_t>& count) : value(start), alive(count) { ++alive; }
    Counter(const Counter&) = delete;
    Counter& operator=(const Counter&) = delete;
    ~Counter() { --alive; }
    std::atomic<std::int64_t> value;
    std::atomic<std::uint64_t>& alive;
  };

  /// `nameserver`: where Through imports the next server.
  Service(std::string nameserver, std::uint64_t seed) : nameserver_(std::move(nameserver)), seed_(seed) {}

  std::int32_t Add(CallContext& context, std::uint64_t call, std::int32_t a, std::int32_t b);
  void Reverse(CallContext& context, std::uint64_t call, std::array<std::byte, 200>& data);
  std::int64_t Mirror(CallContext& context, std::uint64_t call, Storm::Shape& shape);
  String<4000> Join(CallContext& context, std::uint64_t call, const String<2000>& first, const String<2000>& second);
  std::uint64_t Sum(CallContext& context, std::uint64_t call, std::span<const std::byte> data);
  std::uint64_t SumInPlace(CallContext& context, std::uint64_t call, std::span<const std::byte> data);
  void Fill(CallContext& context, std::uint64_t call, std::uint32_t count, std::uint8_t first, Buffer& data);
  Result<std::uint32_t, Storm::Refused> Check(CallContext& context, std::uint64_t call, std::uint32_t value);
  void Throw(CallContext& context, std::uint64_t call);

  Storm::Counter Open(CallContext& context, std::uint64_t call, std::int64_t start);
  std::int64_t Advance(CallContext& context, std::uint64_t call, Counter& counter, std::int64_t by);
  std::int64_t Close(CallContext& context, std::uint64_t call, const std::shared_ptr<Counter>& counter);

  std::uint32_t Nap(CallContext& context, std::uint64_t call, std::uint32_t microseconds);
  void Tell(CallContext& context, std::uint64_t call, std::uint64_t value);
  Result<std::int32_t, Storm::Refused> Through(CallContext& context, std::uint64_t call, const String<32>& name,
                                               std::uint32_t depth, std::int32_t a, std::int32_t b);
  Result<std::uint32_t, Storm::Refused> Ask(CallContext& context, std::uint64_t call, std::uint32_t question);

  /// Records that call `call` is executed, and opens a Counter.
  [[nodiscard]] std::shared_ptr<Counter> open(std::uint64_t call, std::int64_t start);
  /// Drops the bindings that Through has made; later calls of Through make new ones.
  void let_go();
  /// The number of objects behind handles.
  [[nodiscard]] std::uint64_t handles() const noexcept { return handles_.load(); }

 private:
  [[nodiscard]] std::shared_ptr<Client> behind(const std::string& name);
  void begin(std::uint64_t call);
  [[nodiscard]] bool every(std::uint32_t times);

  const std::string nameserver_;
  const std::uint64_t seed_;
  std::atomic<std::uint64_t> handles_{0};
  std::atomic<std::uint32_t> calls_{0};
  std::mutex mutex_;
  std::map<std::string, std::shared_ptr<Client>> behind_;
};

}  // namespace lrpc::storm
