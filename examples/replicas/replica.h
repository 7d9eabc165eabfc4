// What a member of the group keeps: its copy of the replicated store and of the replicated counter.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <string>

#include "counter.server.h"
#include "journal.h"
#include "store.server.h"

namespace replicas {

[[nodiscard]] inline bool newer(const Store::Version& a, const Store::Version& b) noexcept {
  return a.number != b.number ? a.number > b.number : a.writer > b.writer;
}

/// The procedures of Store. Thread-safe.
class StoreReplica {
 public:
  /// Errors: those of Journal::open().
  lrpc::Status open(const std::string& path);
  [[nodiscard]] Store::ReadResults Read(lrpc::CallContext& context, const lrpc::String<100>& key);
  lrpc::Status Write(lrpc::CallContext& context, const lrpc::String<100>& key, const Store::Version& version,
                     const lrpc::String<1000>& value);

 private:
  struct Kept {
    Store::Version version;
    std::string value;
  };
  void keep(const std::string& key, Kept one);

  std::mutex mutex_;
  std::map<std::string, Kept> kept_;
  std::optional<Journal> journal_;
};

/// The procedure of Counter. Thread-safe.
class CounterReplica {
 public:
  using Counts = std::array<std::uint64_t, 16>;
  /// Errors: those of Journal::open().
  lrpc::Status open(const std::string& path);
  lrpc::Result<Counts> Merge(lrpc::CallContext& context, const Counts& counts);

 private:
  std::mutex mutex_;
  Counts counts_{};
  std::optional<Journal> journal_;
};

}  // namespace replicas
