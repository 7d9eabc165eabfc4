// The line of imports that wait for one server.
#pragma once

#include <sys/types.h>

#include <compare>
#include <cstdint>
#include <map>
#include <optional>
#include <set>

namespace lrpc::nameserver {

using ImportId = std::uint64_t;  ///< Ascending: the order of ids is the order of arrival.

/// Users take turns with one import each; the imports of one user keep their order of arrival.
class ImportLine {
 public:
  struct User {
    uid_t user = 0;
    std::uint32_t host = 0;  ///< The host for which `user`, a network domain, imports: each host counts as a user.
    // NOLINTNEXTLINE(modernize-use-nullptr): clang-tidy 14 stumbles over a defaulted operator<=>
    friend auto operator<=>(const User&, const User&) = default;
  };

  [[nodiscard]] bool empty() const noexcept { return imports_.empty(); }
  /// Throws std::bad_alloc; then nothing has changed.
  void insert(User user, ImportId import) {
    std::set<ImportId> one{import};
    imports_[user].merge(one);
  }
  /// Ignored if it does not wait.
  void erase(User user, ImportId import) noexcept {
    const auto found = imports_.find(user);
    if (found == imports_.end()) return;
    found->second.erase(import);
    if (found->second.empty()) imports_.erase(found);
  }
  /// Whose turn it is. Precondition: not empty.
  [[nodiscard]] ImportId next() const noexcept {
    auto user = last_ ? imports_.upper_bound(*last_) : imports_.begin();
    if (user == imports_.end()) user = imports_.begin();
    return *user->second.begin();
  }
  /// `user` has had its turn.
  void had_turn(User user) noexcept { last_ = user; }

 private:
  std::map<User, std::set<ImportId>> imports_;  ///< None is empty.
  std::optional<User> last_;                    ///< Who has had the last turn.
};

}  // namespace lrpc::nameserver
