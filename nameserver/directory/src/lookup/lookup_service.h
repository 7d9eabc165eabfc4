// The procedures of Directory (libclient/directory.lrpc): what this machine's clients ask. Answers come from etcd, one
// request each; while etcd does not answer, from what it said last, with the age of that, and from what this machine
// has.
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
  std::chrono::milliseconds oldest{300'000};  ///< Of an answer without etcd. Zero: no such answers.
  std::function<Host()> own;                  ///< This machine's address, 0 if it is not known. Any thread.
  /// What this machine itself publishes under a name. Any thread.
  std::function<std::optional<PublishedName>(const std::string& name)> own_name;
  Log log;                         ///< Any thread, several at a time.
  LookupBudgets::Budget budget{};  ///< Of each user's questions to etcd; a watch is one.
};

/// Thread-safe. `etcd` must outlive it, and it the Server that serves it.
class LookupService {
 public:
  /// Hosts of one name that are looked at, and that an answer has.
  static constexpr std::size_t kMostRead = 256;
  static constexpr std::size_t kMostAnswered = 8;
  /// Lookups that wait for a name at a time, each with a thread, and with a connection to etcd for each name: of all
  /// users, and of one that is alone. Beside other users each has its fair share. Others are answered at once.
  static constexpr std::size_t kMostWaiting = 64;
  static constexpr std::size_t kMostWaitingOfUser = 32;
  /// Requests to etcd at a time for one user's lookups; further ones queue. Half of what there is for all, so that one
  /// user's lookups do not stop another's.
  static constexpr std::size_t kMostAskingOfUser = Etcd::kMostConnections / 2;
  /// One call waits no longer; its client asks again.
  static constexpr std::chrono::milliseconds kLongestWait{5'000};
  /// After etcd has not answered, lookups do not ask for so long: they get what is known already, or this error.
  static constexpr std::chrono::milliseconds kSpared{1'000};

  LookupService(Etcd& etcd, LookupOptions options);
  LookupService(const LookupService&) = delete;
  LookupService& operator=(const LookupService&) = delete;
  /// Lookups that wait end within about a second. Before the Server goes.
  void stop() noexcept { stopping_.store(true, std::memory_order_relaxed); }

  /// Blocks at most wait_ms or kLongestWait, and the time of two requests to etcd. Refused: name_unknown,
  /// interface_mismatch, version_mismatch, hash_mismatch (hosts have the name, none a fitting interface),
  /// remote_unavailable (etcd does not answer), limit_reached (also: the user asks too often, and nothing is known of
  /// the name without etcd), and Etcd's other errors.
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
    std::int64_t revision = 0;  ///< 0: not from etcd now.
  };
  /// A turn to ask etcd on a user's behalf. Waits for it.
  class Turn;
  /// A place among those that wait for a name, if there is one.
  class Place;
  Result<Found> find(const std::string& name, uid_t user);
  /// Without etcd, if the user has asked it too often.
  std::optional<Result<Found>> used_up(const std::string& name, uid_t user);
  Result<Found> ask(const std::string& name);
  /// Without etcd, if it has not answered lately.
  std::optional<Result<Found>> spared(const std::string& name);
  std::optional<Found> remembered_locked(const std::string& name);
  /// This machine's own word of itself holds, and not etcd's, which may be late, lack it, or be somebody else's.
  void add_own(const std::string& name, std::vector<PublishedName>& hosts) const;
  /// Says how many entries of a name are not right: once, until it is another number.
  void refused(const std::string& name, std::size_t count);
  /// Waits until some host publishes the name, if there is room to wait, and the user may ask etcd to watch it or
  /// another lookup watches it already. False: none has.
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
