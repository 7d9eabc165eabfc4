// A client of etcd, over its HTTP gateway: one method for each request, several endpoints, and a token if there is a
// user.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <mutex>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

#include "etcd/etcd_messages.h"
#include "etcd/http.h"
#include "lrpc/detail/shim/result.h"

namespace lrpc::directory {

struct EtcdOptions {
  std::vector<std::string> endpoints;  ///< "http://10.0.0.1:2379" or "https://...", without a path. At least one.
  std::string user;                    ///< Empty: none.
  std::string password;
  TlsOptions tls;
  std::chrono::milliseconds timeout{3'000};  ///< Of one request to one endpoint; over zero.
};

/// Thread-safe. Connections are kept; at most kMostConnections requests are in progress at a time, and further ones
/// wait. If an endpoint does not answer, the request is sent to the next one, to each once. So it blocks at most
/// endpoints × timeout, twice that if a token must be renewed. Only one request at a time asks for a token; the others
/// wait for its outcome.
///
/// Errors of each: remote_unavailable (no endpoint answers), not_permitted (user, password or rights), bad_message (the
/// peer is not etcd), limit_reached (an answer is longer than 3 MiB), invalid_argument (etcd rejects the request),
/// system_error.
class Etcd {
 public:
  static constexpr std::size_t kMostConnections = 8;

  explicit Etcd(EtcdOptions options);
  Etcd(const Etcd&) = delete;
  Etcd& operator=(const Etcd&) = delete;

  /// The first `limit` keys that begin with `prefix`.
  Result<Range> range(const std::string& prefix, std::size_t limit);
  Result<Lease> grant(std::chrono::seconds ttl);
  /// A `ttl` of 0 in the result: the lease does not exist any more.
  Result<Lease> keep_alive(LeaseId lease);
  /// The number of keys attached to `lease`. Further error: name_unknown, the lease does not exist any more.
  Result<std::size_t> attached(LeaseId lease);
  /// Removes all keys attached to `lease`. Further error: name_unknown.
  Status revoke(LeaseId lease);
  /// Writes all entries or none; at most kMostOperations. Further error: name_unknown, the lease does not exist any
  /// more.
  Status put(std::span<const KeyValue> entries, LeaseId lease);
  /// Removes those of these keys that are attached to `lease`; the others stay, without an error. At most
  /// kMostOperations.
  Status remove(std::span<const KeyValue> entries, LeaseId lease);

  /// Passes changes of keys that begin with `prefix`, from the revision `from` on, to `on_changes` while that returns
  /// true. Its first call, without changes, means that the watch is established. Blocks until it returns false, at most
  /// `wait`, or until `stop` (within about a second). Uses its own connection, which is not one of kMostConnections. If
  /// an endpoint ends the watch or does not answer, the next one continues after the last change, each once. An
  /// endpoint that falls silent is not detected: `wait` bounds that.
  Status watch(const std::string& prefix, std::int64_t from, std::chrono::milliseconds wait,
               const std::function<bool(const Changes&)>& on_changes, const std::atomic<bool>& stop);

  /// Requests that an endpoint did not answer, since the start.
  [[nodiscard]] std::uint64_t unanswered() const noexcept { return unanswered_.load(std::memory_order_relaxed); }

 private:
  class Loan;
  class Authentication;
  Result<std::string> ask(const char* path, const std::string& body);
  /// As above; returns what `read` makes of the answer.
  template <class Read>
  std::invoke_result_t<Read, const std::string&> ask(const char* path, const std::string& body, Read read);
  Result<std::string> ask_at(Http& connection, std::size_t endpoint, const char* path, const std::string& body);
  /// A token of `endpoint`'s cluster. `refused` is a token that was not accepted, or empty.
  Result<std::string> token(Http& connection, std::size_t endpoint, const std::string& refused);
  Result<std::string> authenticate(Http& connection, std::size_t endpoint);
  struct Watching;
  Status watch_at(Http& connection, std::size_t endpoint, Watching& watching);
  Status watch_with(Http& connection, std::size_t endpoint, const std::string& token, Watching& watching);

  const EtcdOptions options_;
  std::atomic<std::size_t> current_{0};  ///< The endpoint that answered last.
  std::atomic<std::uint64_t> unanswered_{0};
  std::mutex mutex_;
  std::condition_variable returned_;
  std::vector<Http> idle_;
  std::size_t in_use_ = 0;
  std::string token_;
  bool authenticating_ = false;
  std::condition_variable authenticated_;
  std::uint64_t authentications_ = 0;  ///< How many have ended. asked_endpoint_ and outcome_ are the last one's.
  std::size_t asked_endpoint_ = 0;
  Result<std::string> outcome_ = Errc::remote_unavailable;
};

}  // namespace lrpc::directory
