#include "publish/chosen_names.h"

#include <sys/types.h>

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

namespace lrpc::directory {

std::vector<shim::ListedName> choose_names(std::vector<shim::ListedName> names, std::size_t most) {
  if (names.size() <= most) return names;
  std::map<uid_t, std::size_t> rounds;
  // The order in which names are chosen: how many of the same user's come before it, the user, the index among all.
  std::vector<std::tuple<std::size_t, uid_t, std::size_t>> turns;
  turns.reserve(names.size());
  for (std::size_t at = 0; at < names.size(); ++at) {
    const uid_t user = names[at].server.uid;
    turns.emplace_back(rounds[user]++, user, at);
  }
  std::ranges::sort(turns);
  turns.resize(most);
  std::ranges::sort(turns, {}, [](const auto& turn) { return std::get<2>(turn); });
  std::vector<shim::ListedName> chosen;
  chosen.reserve(most);
  for (const auto& [round, user, at] : turns) chosen.push_back(std::move(names[at]));
  return chosen;
}

}  // namespace lrpc::directory
