// Users that hold E-stacks, and calls that wait for one.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <map>
#include <optional>
#include <vector>

#include "estacks/estack_shares.h"
#include "users.h"

namespace lrpc::server {

constexpr uid_t kCarol = 3;
constexpr uid_t kDave = 4;

struct Shares : EStackShares {
  Shares(std::size_t most, std::optional<std::size_t> of_user, const std::map<uid_t, int>& held = {})
      : EStackShares({.max_estacks = most, .max_estacks_per_user = of_user}) {
    for (const auto& [user, count] : held) {
      for (int i = 0; i < count; ++i) take(user);
    }
  }
};

/// A-stacks whose calls wait. They belong to no binding, because the binding is not used here.
struct Callers {
  explicit Callers(EStackShares& shares, std::size_t most = 8) : of(shares), astacks(most) {}
  /// False: its call already waits.
  bool ring(Holder holder, std::size_t astack) {
    return of.add({.holder = holder, .binding = {}, .astack = &astacks[astack]});
  }
  /// The A-stack whose call is served next; -1: none.
  int next() {
    const auto call = of.next();
    return call ? static_cast<int>(call->astack - astacks.data()) : -1;
  }
  EStackShares& of;
  std::vector<ServedAStack> astacks;
};

/// How many of `free` a holder gets that takes all that it may, and gives nothing back.
inline std::size_t take_all(EStackShares& shares, Holder holder, std::size_t& free) {
  const std::size_t before = free;
  while (free != 0 && shares.may_have_another(holder)) {
    shares.take(holder);
    --free;
  }
  return before - free;
}

}  // namespace lrpc::server
