#include "publish/chosen_names.h"

#include <sys/types.h>

#include <algorithm>
#include <compare>
#include <map>
#include <utility>

namespace lrpc::directory {
namespace {

/// The place of one name in the order in which names are chosen.
struct Turn {
  std::size_t round;  ///< How many names of this user come before it.
  uid_t user;
  std::size_t at;  ///< Its index among all names.
  // NOLINTNEXTLINE(modernize-use-nullptr): clang-tidy 14 stumbles over a defaulted operator<=>
  auto operator<=>(const Turn&) const = default;
};

}  // namespace

std::vector<shim::ListedName> choose_names(std::vector<shim::ListedName> names, std::size_t most) {
  if (names.size() <= most) return names;
  std::map<uid_t, std::size_t> rounds;
  std::vector<Turn> turns;
  turns.reserve(names.size());
  for (std::size_t at = 0; at < names.size(); ++at) {
    const uid_t user = names[at].server.uid;
    turns.push_back({rounds[user]++, user, at});
  }
  std::ranges::sort(turns);
  turns.resize(most);
  std::ranges::sort(turns, {}, &Turn::at);
  std::vector<shim::ListedName> chosen;
  chosen.reserve(most);
  for (const Turn& turn : turns) chosen.push_back(std::move(names[turn.at]));
  return chosen;
}

}  // namespace lrpc::directory
