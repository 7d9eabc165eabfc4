// One thread's calls to the other machine, as Caller makes calls to its own.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "lrpc/client.h"
#include "made_call.h"
#include "random.h"
#include "remote.client.h"
#include "shared_calls.h"

namespace lrpc::storm {

/// The names that servers of each machine export to the other one.
inline constexpr std::uint32_t kRemoteNames = 4;
inline constexpr const char* kRemoteSurvivorName = "remote-survivor";
/// An fnmatch(3) pattern for exactly those names.
inline constexpr const char* kRemotePattern = "remote-*";
[[nodiscard]] std::string remote_name(std::uint32_t number);
/// That name as the other machine's: with its address.
[[nodiscard]] std::string over_there(const std::string& name);

/// A binding to a server of the other machine, and what may happen to it.
struct RemoteBound {
  std::shared_ptr<Remote::Client> client;  ///< Null: the import failed because of the storm.
  Terms terms;
};

/// Makes calls at random and judges their outcomes. One per thread.
class RemoteCaller {
 public:
  explicit RemoteCaller(std::uint64_t seed) : random_(seed) {}
  [[nodiscard]] Random& random() noexcept { return random_; }

  /// Imports a random name, sometimes the survivor's. Complains if an error does not fit.
  [[nodiscard]] RemoteBound import(const std::string& nameserver);
  /// Imports the survivor's name.
  [[nodiscard]] static RemoteBound import_survivor(const ImportOptions& options);
  /// Makes one call, or several that belong together. False: the binding is of no further use.
  bool call(const RemoteBound& bound);

 private:
  using Calls = SharedCalls<Remote::Client, Remote::Refused>;

  static RemoteBound import(const std::string& name, const ImportOptions& options);
  bool add_in_scope(Remote::Client& client, const Terms& terms);
  bool started(Remote::Client& client, const Terms& terms);
  bool uncommon(Remote::Client& client, const Terms& terms);

  Random random_;
};

}  // namespace lrpc::storm
