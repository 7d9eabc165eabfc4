// As much of an etcd as the directory uses, behind a gateway: keys, one lease after the other, watches that end with
// the next word. It can be down, lose all that it has, and be written to as by somebody else.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <utility>

#include "etcd/base64.h"
#include "etcd/etcd.h"
#include "etcd/json.h"
#include "gateway.h"
#include "log.h"

namespace lrpc::directory::test {

class FakeEtcd {
 public:
  using Keys = std::map<std::string, std::string>;

  [[nodiscard]] EtcdOptions options() const {
    EtcdOptions options;
    options.endpoints = {gateway_.url()};
    options.timeout = kTimeout;
    return options;
  }
  void set(const std::string& key, const std::string& value) {
    const std::lock_guard lock(mutex_);
    keys_[key] = value;
  }
  [[nodiscard]] Keys keys() {
    const std::lock_guard lock(mutex_);
    return keys_;
  }
  [[nodiscard]] int requests() const { return gateway_.requests(); }
  void set_down(bool down) {
    const std::lock_guard lock(mutex_);
    down_ = down;
  }
  /// While it is silent, requests wait for their answers.
  void set_silent(bool silent) {
    {
      const std::lock_guard lock(mutex_);
      silent_ = silent;
    }
    speaks_.notify_all();
  }
  void lose_everything() {
    const std::lock_guard lock(mutex_);
    keys_.clear();
    lease_ = 0;
  }
  /// From now on who revokes a lease gets no answer.
  void leave_revocations_unanswered() { revokes_ = false; }
  [[nodiscard]] bool revoking() const { return revoking_; }
  /// From now on each key that is found is said so many times, which no etcd does.
  void repeat(int times) {
    const std::lock_guard lock(mutex_);
    times_ = times;
  }
  /// What happens once somebody watches, before the watcher is told of a change of `key`. An empty key: of none.
  void on_watch(const std::string& key, std::function<void()> then) {
    const std::lock_guard lock(mutex_);
    watched_ = key;
    then_ = std::move(then);
  }

 private:
  static constexpr std::chrono::milliseconds kTimeout{120'000};

  std::string answer_to(const Gateway::Request& request) {
    if (request.path == "/v3/watch") return watch();
    std::unique_lock lock(mutex_);
    speaks_.wait(lock, [&] { return !silent_; });
    if (down_) return answer(503, "");
    const Json asked = parse_json(request.body).value_or(Json());
    if (request.path == "/v3/kv/range") return answer(200, range(asked).dump());
    if (request.path == "/v3/kv/txn") return transaction(asked);
    const std::int64_t of = integer_of(asked, "ID").value_or(0);
    const Json lease{{"ID", std::to_string(of)}, {"TTL", of == lease_ ? 3600 : 0}};
    if (request.path == "/v3/lease/grant")
      return answer(200, Json({{"ID", std::to_string(lease_ = ++last_lease_)}, {"TTL", 3600}}).dump());
    if (request.path == "/v3/lease/keepalive") return answer(200, Json({{"result", lease}}).dump());
    if (request.path == "/v3/lease/timetolive") return answer(200, attached(of).dump());
    if (request.path == "/v3/lease/revoke" && !revokes_) {
      revoking_ = true;
      return Gateway::kThenNothing;
    }
    if (request.path == "/v3/lease/revoke" && of == lease_) keys_.clear();
    return answer(200, "{}");
  }
  Json range(const Json& asked) const {
    const std::string prefix = bytes_of(asked, "key").value_or("");
    Json found = Json::array();
    for (const auto& [key, value] : keys_)
      for (int i = 0; i < times_ && key.starts_with(prefix); ++i)
        found.push_back({{"key", to_base64(key)}, {"value", to_base64(value)}});
    return {{"header", {{"revision", "7"}}}, {"kvs", found}};
  }
  Json attached(std::int64_t of) const {
    if (of != lease_) return {{"ID", std::to_string(of)}, {"TTL", -1}};
    return {{"ID", std::to_string(of)}, {"TTL", 3600}, {"keys", Json(keys_.size(), "a2V5")}};
  }
  std::string transaction(const Json& asked) {
    for (const Json& one : *member(asked, "success")) {
      const Json* const put = member(one, "request_put");
      if (put == nullptr) {
        const Json& removal = member(*member(one, "request_txn"), "success")->front();
        keys_.erase(bytes_of(*member(removal, "request_delete_range"), "key").value_or(""));
      } else if (integer_of(*put, "lease") == lease_) {
        keys_[bytes_of(*put, "key").value_or("")] = bytes_of(*put, "value").value_or("");
      } else {
        return answer(404, R"({"error":"etcdserver: requested lease not found","code":5})");
      }
    }
    return answer(200, R"({"header":{"revision":"8"}})");
  }
  std::string watch() {
    std::function<void()> then;
    std::string key;
    {
      const std::lock_guard lock(mutex_);
      then = then_;
      key = watched_;
    }
    if (then) then();
    std::string stands = Gateway::kThenNothing + std::string("HTTP/1.1 200 x\r\n\r\n{\"result\":{\"created\":true}}\n");
    if (key.empty()) return stands;
    return stands + "{\"result\":{\"events\":[{\"kv\":{\"key\":\"" + to_base64(key) + "\"}}]}}\n";
  }

  std::mutex mutex_;
  Keys keys_;
  std::int64_t lease_ = 0;  ///< 0: none.
  std::int64_t last_lease_ = 0;
  bool down_ = false;
  bool silent_ = false;
  std::condition_variable speaks_;
  std::atomic<bool> revokes_ = true;
  std::atomic<bool> revoking_ = false;
  int times_ = 1;
  std::string watched_;
  std::function<void()> then_;
  Gateway gateway_{[this](const Gateway::Request& request) { return answer_to(request); }};
};

/// What parts of the directory say, from any thread.
class Said {
 public:
  [[nodiscard]] Log log() {
    return [this](Severity, const std::string& text) {
      const std::lock_guard lock(mutex_);
      text_ += text + "\n";
    };
  }
  [[nodiscard]] std::string text() {
    const std::lock_guard lock(mutex_);
    return text_;
  }
  [[nodiscard]] bool has(const std::string& part) { return text().find(part) != std::string::npos; }

 private:
  std::mutex mutex_;
  std::string text_;
};

}  // namespace lrpc::directory::test
