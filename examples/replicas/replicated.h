// A store and a counter that clients build on a group of replicas, whose calls end when a majority has answered. They
// work, and keep everything that they have acknowledged, as long as a majority of the members lives. Any two majorities
// have a member in common, so a reader always sees the last acknowledged write (Attiya, Bar-Noy and Dolev, JACM 1995).
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

  /// Returns when a majority has the value on its disks. After an error the value may or may not be stored, or may be
  /// stored later. Errors: call_failed (less than a majority lives), call_aborted (the time limit has passed), those of
  /// the replicas.
  [[nodiscard]] lrpc::Status put(std::string_view key, std::string_view value);
  /// nullopt if the key has no value. Errors: as of put().
  [[nodiscard]] lrpc::Result<std::optional<std::string>> get(std::string_view key);

 private:
  struct Newest {
    Store::Version version;
    std::string value;
    bool agreed = true;  ///< All members that answered have this version.
  };
  ReplicatedStore(Store::Client client, std::uint64_t writer) noexcept : client_(std::move(client)), writer_(writer) {}
  [[nodiscard]] lrpc::Result<Newest> newest(std::string_view key);
  [[nodiscard]] lrpc::Status write(std::string_view key, const Store::Version& version, std::string_view value);

  Store::Client client_;
  const std::uint64_t writer_;  ///< Unique to this client.
  /// The number of this client's last write, which a majority need not have, because it may have failed.
  std::uint64_t last_ = 0;
};

/// The value is at least the sum of the successful additions, and at most the sum of all attempted ones. One thread at
/// a time may use an object, and one client at a time each of the 16 places.
class ReplicatedCounter {
 public:
  static lrpc::Result<ReplicatedCounter> import(std::string_view name, std::size_t place,
                                                const lrpc::ImportOptions& options = {});
  /// Returns the value afterwards. Errors: as of ReplicatedStore::put().
  [[nodiscard]] lrpc::Result<std::uint64_t> add(std::uint64_t number);
  [[nodiscard]] lrpc::Result<std::uint64_t> value();

 private:
  using Counts = std::array<std::uint64_t, 16>;
  ReplicatedCounter(Counter::Client client, std::size_t place) noexcept : client_(std::move(client)), place_(place) {}
  /// Merges `counts` into the counts of a majority of the members, and returns the maxima of their answers.
  [[nodiscard]] lrpc::Result<Counts> merged(const Counts& counts);

  Counter::Client client_;
  const std::size_t place_;
  std::uint64_t own_ = 0;  ///< What it has added, or tried to add, at its place.
};

}  // namespace replicas
