// Builds seccomp filters from tables of system calls; used by lrpc::sandbox and lrpc::sealed.
#pragma once

#include <linux/filter.h>

#include <concepts>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "lrpc/detail/shim/result.h"

namespace lrpc::sandbox {

/// A condition on an argument of a system call. The filter sees registers, not the memory that they point to.
struct Condition {
  unsigned argument = 0;                   ///< 0 to 5.
  std::uint64_t mask = ~std::uint64_t{0};  ///< The bits that are compared (ignored if `at_most`).
  std::uint64_t value = 0;
  bool at_most = false;
};
constexpr Condition equal(unsigned argument, std::convertible_to<std::uint64_t> auto value) {
  return {argument, ~std::uint64_t{0}, static_cast<std::uint64_t>(value), false};
}
constexpr Condition at_most(unsigned argument, std::uint64_t value) { return {argument, 0, value, true}; }
/// The argument has none of these bits set.
constexpr Condition without(unsigned argument, std::uint64_t bits) { return {argument, bits, 0, false}; }
/// The argument equals `value`, whatever its bits in `bits` are.
constexpr Condition equal_but_for(unsigned argument, std::uint64_t bits,
                                  std::convertible_to<std::uint64_t> auto value) {
  return {argument, ~bits, static_cast<std::uint64_t>(value), false};
}

/// A system call and the conditions for its arguments, which must all hold. If several rules have one name, one of them
/// must hold.
struct Rule {
  std::string name;
  std::vector<Condition> conditions{};
  int fails_with = 0;  ///< The errno with which the call fails; 0: the call is allowed.
};

/// The system calls that a program needs to compute: memory (never executable), time, randomness, its own signals,
/// exit.
const std::vector<Rule>& computing_rules();

/// What happens to a system call that no rule allows.
enum class Otherwise : std::uint8_t {
  error,  ///< EPERM.
  kill,   ///< The process ends with SIGSYS.
  trace,  ///< The tracer decides; without one the call fails with ENOSYS.
};

struct FilterOptions {
  Otherwise otherwise = Otherwise::error;
  std::vector<Rule> rules{};             ///< A name that this architecture does not have is ignored.
  std::vector<std::string> allow{};      ///< Further calls, with any arguments. An unknown name is an error.
  std::optional<long> notifies_first{};  ///< A call that notifies the filter's listener (by its number); tested first.
};

/// The filter for this processor. A call of another architecture (32 bits, x32) kills the process. Errors:
/// invalid_argument (an unknown name in `allow`), system_error. Allocates; takes about a millisecond.
Result<std::vector<sock_filter>> make_filter(const FilterOptions& options);

/// The name of a system call, such as "openat"; "system call N" if it has none.
std::string name_of_system_call(long number);

}  // namespace lrpc::sandbox
