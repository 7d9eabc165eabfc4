// Requests to etcd's gateway and its answers (etcd's API reference, rpc.proto of 3.4; errors of 3.6, too), as texts: no
// connection, no time. Answers are untrusted: a reader takes what it needs, checks it, and reports malformed answers as
// bad_message.
#pragma once

#include <chrono>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lrpc/detail/shim/result.h"

namespace lrpc::directory {

/// A key for an error without the parts that differ each time: its code, and the endpoint or etcd's text.
[[nodiscard]] std::string kind_of(const Error& error);

/// Assigned by etcd, never 0.
using LeaseId = std::int64_t;

struct KeyValue {
  std::string key;
  std::string value;
  friend bool operator==(const KeyValue&, const KeyValue&) = default;
};

/// The end of the range of all keys that begin with `prefix`: the first key after them; empty if there is none.
[[nodiscard]] std::string behind_prefix(std::string prefix);

/// The first `limit` keys that begin with `prefix`, in byte order. At a revision that etcd has committed.
[[nodiscard]] std::string range_request(const std::string& prefix, std::size_t limit);
struct Range {
  std::vector<KeyValue> found;
  /// etcd's revision when it answered; later changes have a higher one. 0: the answer has no valid revision.
  std::int64_t revision = 0;
  std::uint64_t more = 0;  ///< Keys beyond the limit.
};
[[nodiscard]] Result<Range> read_range(std::string_view body);

[[nodiscard]] std::string grant_request(std::chrono::seconds ttl);
[[nodiscard]] std::string lease_request(LeaseId lease);  ///< To keep a lease alive, and to revoke it.
[[nodiscard]] std::string attached_request(LeaseId lease);
struct Lease {
  LeaseId id = 0;
  std::chrono::seconds ttl{0};  ///< 0: there is no such lease any more.
};
[[nodiscard]] Result<Lease> read_grant(std::string_view body);
[[nodiscard]] Result<Lease> read_keep_alive(std::string_view body);
/// How many keys are attached to the lease. name_unknown: there is no such lease.
[[nodiscard]] Result<std::size_t> read_attached(std::string_view body);

/// Names in one transaction. etcd allows 128 operations by default (--max-txn-ops). A put is one operation; n removals
/// are n + 1, because each is a transaction within the transaction.
inline constexpr std::size_t kMostOperations = 100;
/// Writes all of them, attached to the lease. At most kMostOperations.
[[nodiscard]] std::string put_request(std::span<const KeyValue> entries, LeaseId lease);
/// Removes each key that is attached to this lease. Another lrpc-directory may have written a key under its own lease
/// by now; such a key stays, and the others are removed all the same. At most kMostOperations.
[[nodiscard]] std::string remove_request(std::span<const KeyValue> entries, LeaseId lease);
/// Checks that `body` is an answer to a transaction; ignores whether conditions held.
[[nodiscard]] Status read_transaction(std::string_view body);

[[nodiscard]] std::string authenticate_request(const std::string& user, const std::string& password);
[[nodiscard]] Result<std::string> read_token(std::string_view body);

/// Asks for changes of keys that begin with `prefix`, from the revision `from` on.
[[nodiscard]] std::string watch_request(const std::string& prefix, std::int64_t from);
struct Change {
  std::string key;
  bool removed = false;
};
struct Changes {
  std::vector<Change> changes;
  std::int64_t last = 0;  ///< The revision of the last of them; 0: there are none, or etcd has sent no valid one.
};
/// Reads one line of the stream. remote_unavailable: etcd has ended the watch (the revision is compacted, or etcd
/// stops).
[[nodiscard]] Result<Changes> read_changes(std::string_view line);

/// What an answer with a status other than 200 means. remote_unavailable: that member of etcd is out of order, another
/// may work; not_permitted: user, password, token or rights are not accepted; name_unknown: no such lease;
/// not_supported: etcd's authentication is off; invalid_argument: etcd rejects the request. The text has etcd's own
/// words, made printable and cut at 200 bytes.
[[nodiscard]] Error error_of(long status, std::string_view body);

}  // namespace lrpc::directory
