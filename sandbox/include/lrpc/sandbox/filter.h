// Seccomp filters from tables of system calls: what lrpc::sandbox and lrpc::sealed have in common.
#pragma once

#include <linux/filter.h>

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "lrpc/shim/result.h"

namespace lrpc::sandbox {

/// What an argument of a system call must be. The kernel compares registers: what they point to cannot be looked at.
struct Condition {
  unsigned argument = 0;                   ///< 0 to 5.
  std::uint64_t mask = ~std::uint64_t{0};  ///< The bits that count (not with `at_most`).
  std::uint64_t value = 0;
  bool at_most = false;
};
constexpr Condition equal(unsigned argument, std::uint64_t value) {
  return {argument, ~std::uint64_t{0}, value, false};
}
constexpr Condition at_most(unsigned argument, std::uint64_t value) { return {argument, 0, value, true}; }
/// None of these bits.
constexpr Condition without(unsigned argument, std::uint64_t bits) { return {argument, bits, 0, false}; }
/// This value, whatever these bits are.
constexpr Condition equal_but_for(unsigned argument, std::uint64_t bits, std::uint64_t value) {
  return {argument, ~bits, value, false};
}

/// A system call and what its arguments must be, all of it. Several rules of one name: any of them.
struct Rule {
  std::string name;
  std::vector<Condition> conditions{};
  int fails_with = 0;  ///< An errno instead of what the filter has for calls without a rule; 0: the call is allowed.
};

/// What a program needs that computes: memory (never executable), time, randomness, its own signals, its end.
const std::vector<Rule>& computing_rules();

/// What becomes of a system call that no rule allows.
enum class Otherwise : std::uint8_t {
  error,  ///< EPERM.
  kill,   ///< The process ends with SIGSYS.
  trace,  ///< A tracer is asked; without one it fails with ENOSYS.
};

struct FilterOptions {
  Otherwise otherwise = Otherwise::error;
  std::vector<Rule> rules{};             ///< A name that this processor does not know is left out.
  std::vector<std::string> allow{};      ///< Further calls whatever their arguments; a name nobody knows is an error.
  std::optional<long> notifies_first{};  ///< The number of a call that goes to the filter's listener, looked at first.
};

/// The filter for this processor. A call of another architecture (32 bits, x32) kills the process. Errors:
/// invalid_argument (an unknown name in `allow`), system_error. Allocates; takes about a millisecond.
Result<std::vector<sock_filter>> make_filter(const FilterOptions& options);

/// "openat".
std::string name_of_system_call(long number);

}  // namespace lrpc::sandbox
