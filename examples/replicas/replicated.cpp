#include "replicated.h"

#include <algorithm>
#include <numeric>
#include <random>
#include <utility>

#include "replica.h"

namespace replicas {

namespace {

/// Fails unless a majority of the members has returned a result, whatever the group requires of a call.
template <class Result>
lrpc::Status check_majority(const lrpc::MemberReplies<Result>& replies) {
  const auto good = std::ranges::count_if(replies, [](const auto& one) { return one.result.has_value(); });
  if (static_cast<std::size_t>(good) > replies.members / 2) return {};
  return lrpc::Error{lrpc::Errc::call_failed, "fewer than a majority have answered: the group is to have MAJORITY"};
}

}  // namespace

// ---- the store ----

lrpc::Result<ReplicatedStore> ReplicatedStore::import(std::string_view name, const lrpc::ImportOptions& options) {
  auto client = Store::Client::import(name, options);
  if (!client) return client.error();
  std::random_device random;
  return ReplicatedStore(*std::move(client), std::uint64_t{random()} << 32 | random());
}

lrpc::Result<ReplicatedStore::Newest> ReplicatedStore::newest(std::string_view key) {
  const auto replies = client_.all().Read(key);
  if (!replies) return replies.error();
  if (lrpc::Status enough = check_majority(*replies); !enough) return enough.error();
  Newest newest;
  bool first = true;
  for (const auto& [who, read] : *replies) {
    if (!read) continue;
    newest.agreed = newest.agreed && (first || read->version == newest.version);
    first = false;
    if (!newer(read->version, newest.version)) continue;
    newest.version = read->version;
    newest.value = read->value.str();
  }
  return newest;
}

lrpc::Status ReplicatedStore::write(std::string_view key, const Store::Version& version, std::string_view value) {
  const auto replies = client_.all().Write(key, version, value);
  if (!replies) return replies.error();
  return check_majority(*replies);
}

lrpc::Status ReplicatedStore::put(std::string_view key, std::string_view value) {
  const auto last = newest(key);
  if (!last) return last.error();
  last_ = std::max(last_, last->version.number) + 1;
  return write(key, {.number = last_, .writer = writer_}, value);
}

lrpc::Result<std::optional<std::string>> ReplicatedStore::get(std::string_view key) {
  auto last = newest(key);
  if (!last) return last.error();
  // Write it back, so that later readers see it, too.
  if (!last->agreed)
    if (lrpc::Status written = write(key, last->version, last->value); !written) return written.error();
  if (last->version.number == 0) return std::optional<std::string>();
  return std::optional(std::move(last->value));
}

// ---- the counter ----

lrpc::Result<ReplicatedCounter> ReplicatedCounter::import(std::string_view name, std::size_t place,
                                                          const lrpc::ImportOptions& options) {
  if (place >= Counts().size()) return lrpc::Error{lrpc::Errc::invalid_argument, "the places are 0 to 15"};
  auto client = Counter::Client::import(name, options);
  if (!client) return client.error();
  return ReplicatedCounter(*std::move(client), place);
}

lrpc::Result<ReplicatedCounter::Counts> ReplicatedCounter::merged(const Counts& counts) {
  const auto replies = client_.all().Merge(counts);
  if (!replies) return replies.error();
  if (lrpc::Status enough = check_majority(*replies); !enough) return enough.error();
  Counts all = counts;
  for (const auto& [who, merged] : *replies) {
    if (!merged) continue;
    for (std::size_t i = 0; i < all.size(); ++i) all[i] = std::max(all[i], (*merged)[i]);
  }
  return all;
}

lrpc::Result<std::uint64_t> ReplicatedCounter::add(std::uint64_t number) {
  auto counts = merged({});
  if (!counts) return counts.error();
  own_ = std::max(own_, (*counts)[place_]) + number;
  (*counts)[place_] = own_;
  counts = merged(*counts);
  if (!counts) return counts.error();
  return std::accumulate(counts->begin(), counts->end(), std::uint64_t{0});
}

lrpc::Result<std::uint64_t> ReplicatedCounter::value() {
  auto counts = merged({});
  if (!counts) return counts.error();
  // Merge it back, so that later readers see everything that this one has seen.
  counts = merged(*counts);
  if (!counts) return counts.error();
  return std::accumulate(counts->begin(), counts->end(), std::uint64_t{0});
}

}  // namespace replicas
