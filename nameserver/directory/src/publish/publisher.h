// The thread that keeps this host's names in etcd: performs PublisherPolicy's steps, and reads the local names.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <exception>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

#include "etcd/etcd.h"
#include "log.h"
#include "publish/local_names.h"
#include "publish/publisher_policy.h"

namespace lrpc::directory {

/// Makes the request of `step`, unless it is to wait, and tells `policy` when it has succeeded. `ttl`: that of the
/// policy. Errors: those of Etcd; then call `policy.failed()`.
Status carry_out(const PublisherPolicy::Step& step, PublisherPolicy& policy, Etcd& etcd, std::chrono::seconds ttl);

struct PublisherOptions {
  std::string nameserver;
  std::string prefix;
  PublisherPolicy::Settings policy;
  std::chrono::milliseconds look_every{1'000};  ///< How often the local names are read.
  Log log;                                      ///< Called on the publisher's thread.
};

/// Owns its thread. `etcd` must outlive it. The destructor revokes the lease, so that the names disappear at once; it
/// blocks as long as one request may take.
class Publisher {
 public:
  Publisher(Etcd& etcd, PublisherOptions options);
  /// Starts the thread; before that nothing is read, and nothing is sent to etcd. Call it once.
  void begin();
  ~Publisher();

  /// This machine's address; 0 until it is known. Thread-safe.
  [[nodiscard]] Host own() const noexcept { return own_.load(std::memory_order_relaxed); }
  /// What this machine itself publishes, or would publish if etcd answered, under this name. Thread-safe.
  [[nodiscard]] std::optional<PublishedName> own_name(const std::string& name) const;

 private:
  using Time = PublisherPolicy::Time;
  void run();
  void look(Time now);
  void perform(const PublisherPolicy::Step& step);
  void failed(const PublisherPolicy::Step& step, const Error& why);
  /// Logs `text`, unless `last` is `key` already: texts of one kind may differ, for example in their times.
  void say(std::string& last, Severity severity, const std::string& text, const std::string& key);
  void say(std::string& last, Severity severity, const std::string& text) { say(last, severity, text, text); }
  void went_wrong(const std::exception& error) noexcept;
  void wait_until(Time until);

  Etcd& etcd_;
  const PublisherOptions options_;
  const std::uint64_t instance_;
  LocalNames local_;
  PublisherPolicy policy_;
  std::atomic<Host> own_{0};
  std::string said_of_names_;
  std::string said_of_etcd_;
  mutable std::mutex mutex_;
  std::condition_variable wake_;
  std::map<std::string, PublishedName> own_names_;
  bool stopping_ = false;
  std::thread thread_;
};

}  // namespace lrpc::directory
