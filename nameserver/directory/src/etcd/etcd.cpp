#include "etcd/etcd.h"

#include <algorithm>
#include <optional>
#include <utility>

namespace lrpc::directory {

Etcd::Etcd(EtcdOptions options) : options_(std::move(options)) { idle_.reserve(kMostConnections); }

/// One of the kMostConnections slots, and its connection. Both are returned when it is destroyed.
class Etcd::Loan {
 public:
  /// Waits for a free slot.
  explicit Loan(Etcd& etcd) : etcd_(etcd) {
    std::unique_lock lock(etcd_.mutex_);
    etcd_.returned_.wait(lock, [&] { return etcd_.in_use_ < kMostConnections; });
    ++etcd_.in_use_;
    if (etcd_.idle_.empty()) return;
    connection_ = std::move(etcd_.idle_.back());
    etcd_.idle_.pop_back();
  }
  Loan(const Loan&) = delete;
  Loan& operator=(const Loan&) = delete;
  ~Loan() {
    {
      const std::lock_guard lock(etcd_.mutex_);
      // Allocates nothing: idle_ has room for all, because a connection is made only if none is idle.
      if (connection_) etcd_.idle_.push_back(*std::move(connection_));
      --etcd_.in_use_;
    }
    etcd_.returned_.notify_one();
  }
  Result<Http*> connection() {
    if (!connection_) {
      auto made = Http::make(etcd_.options_.tls);
      if (!made) return made.error();
      connection_ = *std::move(made);
    }
    return &*connection_;
  }

 private:
  Etcd& etcd_;
  std::optional<Http> connection_;
};

/// The one request for a token. Its destructor passes the outcome to the other threads, also after an exception.
class Etcd::Authentication {
 public:
  Authentication(Etcd& etcd, std::size_t endpoint) noexcept : etcd_(etcd), endpoint_(endpoint) {}
  Authentication(const Authentication&) = delete;
  Authentication& operator=(const Authentication&) = delete;
  ~Authentication() {
    {
      const std::lock_guard lock(etcd_.mutex_);
      if (outcome) etcd_.token_.swap(token);
      etcd_.outcome_ = std::move(outcome);
      etcd_.asked_endpoint_ = endpoint_;
      etcd_.authenticating_ = false;
      ++etcd_.authentications_;
    }
    etcd_.authenticated_.notify_all();
  }
  Result<std::string> outcome = Errc::system_error;
  std::string token;

 private:
  Etcd& etcd_;
  const std::size_t endpoint_;
};

Result<std::string> Etcd::authenticate(Http& connection, std::size_t endpoint) {
  const auto reply = connection.post({.url = options_.endpoints[endpoint] + "/v3/auth/authenticate",
                                      .body = authenticate_request(options_.user, options_.password),
                                      .token = {},
                                      .timeout = options_.timeout});
  if (!reply) return reply.error();
  if (reply->status == 200) return read_token(reply->body);
  const Error error = error_of(reply->status, reply->body);
  // An etcd without users takes requests without a token.
  if (error.code == Errc::not_supported) return std::string();
  return error.code == Errc::invalid_argument ? Error{Errc::not_permitted, error.text} : error;
}

Result<std::string> Etcd::token(Http& connection, std::size_t endpoint, const std::string& refused) {
  if (options_.user.empty()) return std::string();
  {
    std::unique_lock lock(mutex_);
    for (;;) {
      if (token_ != refused && !token_.empty()) return token_;
      if (!authenticating_) break;
      const std::uint64_t before = authentications_;
      authenticated_.wait(lock, [&] { return authentications_ != before; });
      if (asked_endpoint_ == endpoint && (!outcome_ || outcome_->empty() || *outcome_ != refused)) return outcome_;
    }
    authenticating_ = true;
  }
  Authentication one(*this, endpoint);
  one.outcome = authenticate(connection, endpoint);
  if (one.outcome) one.token = *one.outcome;
  return one.outcome;
}

Result<std::string> Etcd::ask_at(Http& connection, std::size_t endpoint, const char* path, const std::string& body) {
  auto held = token(connection, endpoint, {});
  for (bool renewed = false;; renewed = true) {
    if (!held) return held.error();
    auto reply = connection.post(
        {.url = options_.endpoints[endpoint] + path, .body = body, .token = *held, .timeout = options_.timeout});
    if (!reply) return reply.error();
    if (reply->status == 200) return std::move(reply->body);
    Error error = error_of(reply->status, reply->body);
    // The token may have expired, or come from a member that has restarted: try once with a new one.
    if (error.code != Errc::not_permitted || renewed || options_.user.empty()) return error;
    held = token(connection, endpoint, *held);
  }
}

Result<std::string> Etcd::ask(const char* path, const std::string& body) {
  Loan loan(*this);
  const auto connection = loan.connection();
  if (!connection) return connection.error();
  const std::size_t first = current_.load(std::memory_order_relaxed);
  Error last;
  for (std::size_t i = 0; i < options_.endpoints.size(); ++i) {
    const std::size_t endpoint = (first + i) % options_.endpoints.size();
    auto answer = ask_at(**connection, endpoint, path, body);
    if (answer || answer.code() != Errc::remote_unavailable) {
      current_.store(endpoint, std::memory_order_relaxed);
      return answer;
    }
    unanswered_.fetch_add(1, std::memory_order_relaxed);
    last = answer.error();
  }
  return last;
}

template <class Read>
std::invoke_result_t<Read, const std::string&> Etcd::ask(const char* path, const std::string& body, Read read) {
  const auto answer = ask(path, body);
  if (!answer) return answer.error();
  return read(*answer);
}

Result<Range> Etcd::range(const std::string& prefix, std::size_t limit) {
  return ask("/v3/kv/range", range_request(prefix, limit), read_range);
}

Result<Lease> Etcd::grant(std::chrono::seconds ttl) { return ask("/v3/lease/grant", grant_request(ttl), read_grant); }

Result<Lease> Etcd::keep_alive(LeaseId lease) {
  return ask("/v3/lease/keepalive", lease_request(lease), read_keep_alive);
}

Result<std::size_t> Etcd::attached(LeaseId lease) {
  return ask("/v3/lease/timetolive", attached_request(lease), read_attached);
}

Status Etcd::revoke(LeaseId lease) {
  return ask("/v3/lease/revoke", lease_request(lease), [](const std::string&) { return Status(); });
}

Status Etcd::put(std::span<const KeyValue> entries, LeaseId lease) {
  return ask("/v3/kv/txn", put_request(entries, lease), read_transaction);
}

Status Etcd::remove(std::span<const KeyValue> entries, LeaseId lease) {
  return ask("/v3/kv/txn", remove_request(entries, lease), read_transaction);
}

/// The state of a watch, independent of the endpoint.
struct Etcd::Watching {
  const std::string& prefix;
  std::int64_t from;
  std::chrono::steady_clock::time_point until;
  const std::function<bool(const Changes&)>& on_changes;
  const std::atomic<bool>& stop;
  bool enough = false;  ///< on_changes has returned false.

  [[nodiscard]] std::chrono::milliseconds left() const {
    return std::chrono::ceil<std::chrono::milliseconds>(until - std::chrono::steady_clock::now());
  }
  [[nodiscard]] bool over() const { return enough || stop.load(std::memory_order_relaxed) || left().count() <= 0; }
};

Status Etcd::watch_at(Http& connection, std::size_t endpoint, Watching& watching) {
  auto held = token(connection, endpoint, {});
  for (bool renewed = false;; renewed = true) {
    if (!held) return held.error();
    Status watched = watch_with(connection, endpoint, *held, watching);
    // As in ask_at(): once, with a new one.
    if (watched.code() != Errc::not_permitted || renewed || options_.user.empty() || watching.over()) return watched;
    held = token(connection, endpoint, *held);
  }
}

Status Etcd::watch_with(Http& connection, std::size_t endpoint, const std::string& token, Watching& watching) {
  Status outcome;
  std::string refusal;
  const auto on_line = [&](std::string_view line) {
    auto changes = read_changes(line);
    if (changes) {
      watching.from = std::max(watching.from, changes->last + 1);
      watching.enough = !watching.on_changes(*changes);
      return !watching.enough;
    }
    refusal = line;
    outcome = changes.error();
    return false;
  };
  const auto status = connection.stream({.url = options_.endpoints[endpoint] + "/v3/watch",
                                         .body = watch_request(watching.prefix, watching.from),
                                         .token = token,
                                         .timeout = watching.left()},
                                        on_line, watching.stop);
  if (!status) return status.error();
  if (*status != 200 && *status != 0) return error_of(*status, refusal);  // 0: stopped before there was a status
  if (outcome && !watching.over()) return Error{Errc::remote_unavailable, "etcd has ended the watch"};
  return outcome;
}

Status Etcd::watch(const std::string& prefix, std::int64_t from, std::chrono::milliseconds wait,
                   const std::function<bool(const Changes&)>& on_changes, const std::atomic<bool>& stop) {
  auto connection = Http::make(options_.tls);
  if (!connection) return connection.error();
  Watching watching{prefix, from, std::chrono::steady_clock::now() + wait, on_changes, stop};
  const std::size_t first = current_.load(std::memory_order_relaxed);
  Status watched;
  for (std::size_t i = 0; i < options_.endpoints.size() && (i == 0 || !watching.over()); ++i) {
    watched = watch_at(*connection, (first + i) % options_.endpoints.size(), watching);
    if (watched || watched.code() != Errc::remote_unavailable) break;
  }
  return watched;
}

}  // namespace lrpc::directory
