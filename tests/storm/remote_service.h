// The procedures that the storm's servers export to the other machine.
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "lrpc/server.h"
#include "remote.server.h"
#include "service.h"

namespace lrpc::storm {

/// Thread-safe. State that local and remote calls share is in the Service, which must outlive this object.
class RemoteService {
 public:
  using Counter = Service::Counter;
  explicit RemoteService(Service& service) noexcept : service_(service) {}

  std::int32_t Add(CallContext& context, std::uint64_t call, std::int32_t a, std::int32_t b);
  std::uint64_t Sum(CallContext& context, std::uint64_t call, std::span<const std::byte> data);
  void Fill(CallContext& context, std::uint64_t call, std::uint32_t count, std::uint8_t first, Buffer& data);
  Result<std::uint32_t, Remote::Refused> Check(CallContext& context, std::uint64_t call, std::uint32_t value);

  Remote::Counter Open(CallContext& context, std::uint64_t call, std::int64_t start);
  std::int64_t Advance(CallContext& context, std::uint64_t call, Counter& counter, std::int64_t by);
  std::int64_t Close(CallContext& context, std::uint64_t call, const std::shared_ptr<Counter>& counter);

  std::uint32_t Nap(CallContext& context, std::uint64_t call, std::uint32_t microseconds);
  void Tell(CallContext& context, std::uint64_t call, std::uint64_t value);
  Result<std::int32_t, Remote::Refused> Onward(CallContext& context, std::uint64_t call, const String<32>& name,
                                               std::int32_t a, std::int32_t b);

 private:
  Service& service_;
};

}  // namespace lrpc::storm
