// What clients make of a group of replicas whose calls end when a majority has answered: a store and a counter that go
// on, and forget nothing that they have acknowledged, as long as a majority lives. Any two majorities have a member in
// common, so a reader always hears of the last write that has been acknowledged (Attiya, Bar-Noy and Dolev, JACM
// 1995).
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "counter.client.h"
#include "store.client.h"

namespace replicas {

/// Used by one thread at a time. Any number of clients may use one store.
class ReplicatedStore {
 public:
  /// `name`: "store@replicas". Errors: those of import.
  static lrpc::Result<ReplicatedStore> import(std::string_view name, const lrpc::ImportOptions& options = {});

  /// Returns when a majority has the value on its disks. An error: it may be there or not, or come there later.
  /// Errors: call_failed (fewer than a majority live), call_aborted (the time is over), those of the replicas.
  [[nodiscard]] lrpc::Status put(std::string_view key, std::string_view value);
  /// nullopt: there is none. Errors: as of put().
  [[nodiscard]] lrpc::Result<std::optional<std::string>> get(std::string_view key);

 private:
  struct Newest {
    Store::Version version;
    std::string value;
    bool agreed = true;  ///< All that were heard have this version.
  };
  ReplicatedStore(Store::Client client, std::uint64_t writer) noexcept : client_(std::move(client)), writer_(writer) {}
  [[nodiscard]] lrpc::Result<Newest> newest(std::string_view key);
  [[nodiscard]] lrpc::Status write(std::string_view key, const Store::Version& version, std::string_view value);

  Store::Client client_;
  const std::uint64_t writer_;  ///< Of this client alone.
  /// The number of its last write, of which a majority need not have heard: it may have failed.
  std::uint64_t last_ = 0;
};

/// The value is at least what was added with success, and at most what was to be added. Used by one thread at a time,
/// and in one place of 16 by one client at a time.
class ReplicatedCounter {
 public:
  static lrpc::Result<ReplicatedCounter> import(std::string_view name, std::size_t place,
                                                const lrpc::ImportOptions& options = {});
  /// The value afterwards. Errors: as of ReplicatedStore::put().
  [[nodiscard]] lrpc::Result<std::uint64_t> add(std::uint64_t number);
  [[nodiscard]] lrpc::Result<std::uint64_t> value();

 private:
  using Counts = std::array<std::uint64_t, 16>;
  ReplicatedCounter(Counter::Client client, std::size_t place) noexcept : client_(std::move(client)), place_(place) {}
  /// What a majority has at least.
  [[nodiscard]] lrpc::Result<Counts> merged(const Counts& counts);

  Counter::Client client_;
  const std::size_t place_;
  std::uint64_t own_ = 0;  ///< What it has added, or tried to add, in its place.
};

}  // namespace replicas
