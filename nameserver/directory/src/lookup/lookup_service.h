// The procedures of Directory (libclient/directory.lrpc), which this machine's clients call. An answer takes one
// request to etcd. While etcd does not answer, it is etcd's last answer, with its age, plus what this machine itself
// publishes.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "directory.server.h"
#include "etcd/etcd.h"
#include "log.h"
#include "lookup/last_answers.h"
#include "lookup/lookup_budgets.h"
#include "lookup/pick.h"
#include "lookup/shared_watches.h"
#include "lrpc/detail/shim/shares.h"
#include "lrpc/server.h"

namespace lrpc::directory {

struct LookupOptions {
  std::string prefix;
  std::chrono::milliseconds oldest{300'000};  ///< The age up to which an answer is used without etcd. Zero: none is.
  std::function<Host()> own;                  ///< This machine's address, 0 if it is not known. Any thread.
  /// What this machine itself publishes under a name. Any thread.
  std::function<std::optional<PublishedName>(const std::string& name)> own_name;
  Log log;                         ///< Any thread, several at a time.
  LookupBudgets::Budget budget{};  ///< For each user's requests to etcd; a watch is one.
};

/// Thread-safe. `etcd` must outlive this object, and this object the Server that serves it.
class LookupService {
 public:
  /// How many hosts of one name are read from etcd, and how many an answer has.
  static constexpr std::size_t kMostRead = 256;
  static constexpr std::size_t kMostAnswered = 8;
  /// How many lookups may wait for a name at a time, for all users and for one user that is alone; beside other users,
  /// each gets its fair share. Each takes a thread, and each name a connection to etcd. Lookups beyond that are
  /// answered at once.
  static constexpr std::size_t kMostWaiting = 64;
  static constexpr std::size_t kMostWaitingOfUser = 32;
  /// How many requests to etcd one user's lookups may have in progress; further ones queue. Half of all connections, so
  /// that one user's lookups do not block another's.
  static constexpr std::size_t kMostAskingOfUser = Etcd::kMostConnections / 2;
  /// The longest wait of one call; the client calls again.
  static constexpr std::chrono::milliseconds kLongestWait{5'000};
  /// After etcd has not answered, lookups do not ask it for so long: they return what is known, or this error.
  static constexpr std::chrono::milliseconds kSpared{1'000};

  LookupService(Etcd& etcd, LookupOptions options);
  LookupService(const LookupService&) = delete;
  LookupService& operator=(const LookupService&) = delete;
  /// Ends waiting lookups within about a second. Call it before the Server is destroyed.
  void stop() noexcept { stopping_.store(true, std::memory_order_relaxed); }

  /// Blocks at most wait_ms or kLongestWait, and the time of two requests to etcd. Refused: name_unknown;
  /// interface_mismatch, version_mismatch, hash_mismatch (hosts have the name, but none a compatible interface);
  /// remote_unavailable (etcd does not answer); limit_reached (also: the user asks too often, and nothing is known of
  /// the name without etcd); and Etcd's other errors.
  Result<Directory::LookupResults, Directory::Refused> Lookup(CallContext& context, const String<255>& name,
                                                              const String<255>& interface_name,
                                                              std::uint16_t major_version, std::uint16_t minor_version,
                                                              std::uint64_t hash, std::uint32_t wait_ms);
  void Report(CallContext& context, const String<15>& host, bool reached);

 private:
  using Time = std::chrono::steady_clock::time_point;
  struct Found {
    std::vector<PublishedName> hosts;
    std::chrono::milliseconds age{0};
    std::int64_t revision = 0;  ///< 0: this is not an answer of etcd now.
  };
  /// The right to send a request to etcd for a user. The constructor waits for it.
  class Turn;
  /// A place among the lookups that wait for a name, if there is one free.
  class Place;
  Result<Found> find(const std::string& name, uid_t user);
  /// The answer without etcd, if the user has asked it too often.
  std::optional<Result<Found>> used_up(const std::string& name, uid_t user);
  Result<Found> ask(const std::string& name);
  /// The answer without etcd, if it has not answered lately.
  std::optional<Result<Found>> spared(const std::string& name);
  /// What is known without etcd; if that is nothing, `why`.
  Result<Found> remembered_locked(const std::string& name, const Error& why);
  /// Replaces etcd's entry for this machine by what this machine publishes, if anything: etcd's may be old, missing, or
  /// somebody else's.
  void add_own(const std::string& name, std::vector<PublishedName>& hosts) const;
  /// Logs how many entries of a name are invalid, each time that the number changes.
  void refused(const std::string& name, std::size_t count);
  /// Waits until some host publishes the name, if there is room to wait, and if the user may make etcd watch it or
  /// another lookup already watches it. False: no host has published it.
  bool wait_for_change(const std::string& name, std::int64_t revision, std::chrono::milliseconds wait, uid_t user);
  Result<Directory::LookupResults> answer(const Found& found, const InterfaceId& wanted, const std::string& name,
                                          uid_t user);

  Etcd& etcd_;
  const LookupOptions options_;
  std::atomic<bool> stopping_{false};
  std::mutex mutex_;
  LastAnswers last_;
  std::map<std::string, std::size_t> refused_;  ///< Entries, by name; none is zero. At most kMostNames of LastAnswers.
  Suspects suspects_;
  LookupBudgets budgets_;
  std::mt19937_64 chance_;
  Time etcd_failed_{};
  Error failure_;
  std::condition_variable turn_;
  std::map<uid_t, std::size_t> asking_;  ///< By user; none is zero.
  shim::UserShares waiting_;             ///< Lookups that wait for a name.
  SharedWatches watches_;
};

}  // namespace lrpc::directory
