// One thread's calls: what it passes, which results must come back, which errors may.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "made_call.h"
#include "random.h"
#include "shared_calls.h"
#include "storm.client.h"

namespace lrpc::storm {

using Client = Storm::Client;

/// The names that servers export: kNames of mortal servers, and the survivor's.
inline constexpr std::uint32_t kNames = 10;
inline constexpr const char* kSurvivorName = "survivor";
[[nodiscard]] std::string mortal_name(std::uint32_t number);
/// A random name; sometimes the survivor's.
[[nodiscard]] std::string some_name(Random& random);

/// Imports. The storm may make that fail: then null, and a complaint if the error does not fit.
[[nodiscard]] std::shared_ptr<Client> import_or_not(const std::string& name, const ImportOptions& options);
/// The same without lrpcd: over its own socket, to a server that listens at private_socket() for that name.
[[nodiscard]] std::shared_ptr<Client> import_privately_or_not(const std::string& name, const ImportOptions& options);
[[nodiscard]] std::string private_socket(const std::string& nameserver, const std::string& name);

/// Makes calls at random and judges what comes back. One a thread.
class Caller {
 public:
  explicit Caller(std::uint64_t seed) : random_(seed) {}
  [[nodiscard]] Random& random() noexcept { return random_; }

  /// Makes one call, or several that belong together. False: the binding is of no further use.
  bool call(Client& client, const Terms& terms);
  /// Makes some calls in a scope that another thread cancels at the same time.
  bool cancelled(Client& client, const Terms& terms);
  /// Starts some calls, finishes most of them, abandons the others.
  bool call_several(Client& client, const Terms& terms);
  /// Starts many calls at once, more than there are A-stacks at first, and finishes them. The binding may grow.
  bool burst(Client& client, const Terms& terms, std::uint32_t count);
  /// For procedures that make calls themselves: the calls that `Through` makes to the next server.
  Result<std::int32_t> add(Client& client, std::int32_t a, std::int32_t b);
  Result<std::int32_t, Storm::Refused> through(Client& client, const std::string& name, std::uint32_t depth,
                                               std::int32_t a, std::int32_t b);

 private:
  using Calls = SharedCalls<Client, Storm::Refused>;

  bool simple(Client& client, const Terms& terms);
  bool large(Client& client, const Terms& terms);
  bool uncommon(Client& client, const Terms& terms);

  Random random_;
};

}  // namespace lrpc::storm
