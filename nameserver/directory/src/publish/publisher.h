// Keeps this host's names in etcd: one thread reads the local names, another one performs PublisherPolicy's steps.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <exception>
#include <functional>
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

/// Tells the policy what came of a step.
using Outcome = std::function<void(PublisherPolicy&)>;

/// Makes the request of `step`, unless it is to wait. `step` must outlive the outcome. `ttl`: that of the policy.
/// Errors: those of Etcd; then call PublisherPolicy::failed().
Result<Outcome> carry_out(const PublisherPolicy::Step& step, Etcd& etcd, std::chrono::seconds ttl);

struct PublisherOptions {
  std::string nameserver;
  std::string prefix;
  PublisherPolicy::Settings policy;
  std::chrono::milliseconds look_every{1'000};  ///< How often the local names are read.
  Log log;                                      ///< Any thread, several at a time.
};

/// Owns its two threads: while etcd does not answer, the local names are read all the same, and while lrpcd or
/// lrpc-netd does not answer, the lease is kept alive. `etcd` must outlive it. The destructor revokes the lease, so
/// that the names disappear at once; it blocks as long as one request or one look at the local names may take.
class Publisher {
 public:
  Publisher(Etcd& etcd, PublisherOptions options);
  /// Starts the threads; before that nothing is read, and nothing is sent to etcd. Call it once.
  void begin();
  ~Publisher();

  /// This machine's address; 0 until it is known. Thread-safe.
  [[nodiscard]] Host own() const noexcept { return own_.load(std::memory_order_relaxed); }
  /// What this machine itself publishes, or would publish if etcd answered, under this name. Thread-safe.
  [[nodiscard]] std::optional<PublishedName> own_name(const std::string& name) const;

 private:
  using Time = PublisherPolicy::Time;
  void publish();
  void follow_names();
  void look(Time now);
  /// Changes what is guarded, and wakes the thread that publishes.
  template <class Change>
  void change(const Change& make);
  void perform(const PublisherPolicy::Step& step);
  void failed(const PublisherPolicy::Step& step, const Error& why);
  /// Logs `text`, unless `last` is `key` already: texts of one kind may differ, for example in their times.
  void say(std::string& last, Severity severity, const std::string& text, const std::string& key);
  void say(std::string& last, Severity severity, const std::string& text) { say(last, severity, text, text); }
  void went_wrong(std::string& last, const std::exception& error) noexcept;
  /// Whether the threads are to end.
  bool wait_until(Time until);

  Etcd& etcd_;
  const PublisherOptions options_;
  const std::uint64_t instance_;
  std::atomic<Host> own_{0};
  // Of the thread that follows the names.
  LocalNames local_;
  std::string said_of_names_;
  // Of the thread that publishes.
  std::string said_of_etcd_;
  // Guarded by the mutex.
  mutable std::mutex mutex_;
  std::condition_variable wake_;
  PublisherPolicy policy_;
  std::map<std::string, PublishedName> own_names_;
  bool changed_ = false;  ///< Since the policy was last asked for a step.
  bool stopping_ = false;

  std::thread follows_;
  std::thread publishes_;
};

}  // namespace lrpc::directory
