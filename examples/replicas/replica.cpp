#include "replica.h"

#include <algorithm>
#include <limits>
#include <sstream>
#include <utility>

namespace replicas {

lrpc::Status StoreReplica::open(const std::string& path) {
  auto journal = Journal::open(path, [this](std::string_view record) {
    std::istringstream fields{std::string(record)};
    Kept one;
    std::size_t length = 0;  // length of the key, which may contain any characters
    fields >> one.version.number >> one.version.writer >> length;
    const std::string rest(std::istreambuf_iterator<char>(fields.ignore(1)), {});
    length = std::min(length, rest.size());
    one.value = rest.substr(length);
    keep(rest.substr(0, length), std::move(one));
  });
  if (!journal) return journal.error();
  journal_.emplace(*std::move(journal));
  return {};
}

void StoreReplica::keep(const std::string& key, Kept one) {
  Kept& known = kept_[key];
  if (newer(one.version, known.version)) known = std::move(one);
}

Store::ReadResults StoreReplica::Read(lrpc::CallContext& /*context*/, const lrpc::String<100>& key) {
  const std::lock_guard lock(mutex_);
  const auto known = kept_.find(key.str());
  if (known == kept_.end()) return {};
  return {.version = known->second.version, .value = lrpc::String<1000>::cut(known->second.value)};
}

lrpc::Status StoreReplica::Write(lrpc::CallContext& /*context*/, const lrpc::String<100>& key,
                                 const Store::Version& version, const lrpc::String<1000>& value) {
  const std::lock_guard lock(mutex_);
  // No later version could be newer than this one.
  if (version.number == std::numeric_limits<std::uint64_t>::max())
    return lrpc::Error{lrpc::Errc::invalid_argument, "no version has this number"};
  const auto known = kept_.find(key.str());
  if (known != kept_.end() && known->second.version == version && known->second.value != value.view())
    return lrpc::Error{lrpc::Errc::invalid_argument, "this version has another value"};
  if (known != kept_.end() && !newer(version, known->second.version)) return {};
  std::ostringstream record;
  record << version.number << ' ' << version.writer << ' ' << key.view().size() << ' ' << key.view() << value.view();
  if (lrpc::Status written = journal_->append(record.str()); !written) return written;
  keep(key.str(), {version, value.str()});
  return {};
}

lrpc::Status CounterReplica::open(const std::string& path) {
  auto journal = Journal::open(path, [this](std::string_view record) {
    std::istringstream fields{std::string(record)};
    for (std::uint64_t& count : counts_) {
      std::uint64_t later = 0;
      fields >> later;
      count = std::max(count, later);
    }
  });
  if (!journal) return journal.error();
  journal_.emplace(*std::move(journal));
  return {};
}

lrpc::Result<CounterReplica::Counts> CounterReplica::Merge(lrpc::CallContext& /*context*/, const Counts& counts) {
  const std::lock_guard lock(mutex_);
  Counts merged = counts_;
  for (std::size_t i = 0; i < merged.size(); ++i) merged[i] = std::max(merged[i], counts[i]);
  if (merged == counts_) return merged;
  std::ostringstream record;
  for (const std::uint64_t count : merged) record << count << ' ';
  if (lrpc::Status written = journal_->append(record.str()); !written) return written.error();
  return counts_ = merged;
}

}  // namespace replicas
