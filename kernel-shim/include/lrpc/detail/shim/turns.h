// Users who take turns, however much one of them has to do. Pure.
#pragma once

#include <list>
#include <map>
#include <utility>

namespace lrpc::shim {

/// Members of users, for instance watched descriptors. Each user has a line of those of its members that wait, in the
/// order in which they began to. The first of each line is taken, one user after the other, and again. Only join()
/// needs memory. Not thread-safe.
template <class User, class Member>
class Turns {
  struct Line;
  using Lines = std::list<Line>;
  struct Entry {
    Member member;
    typename Lines::iterator line{};
    bool waits = false;
  };
  using Entries = std::list<Entry>;
  struct Line {
    User user;
    Entries waiting{};
    Entries resting{};
  };

 public:
  /// Of a member, from join() to leave().
  using Place = typename Entries::iterator;

  /// The member does not wait yet. Throws std::bad_alloc, and has done nothing.
  Place join(const User& user, Member member) {
    Entries entry;
    const Place place = entry.insert(entry.end(), Entry{std::move(member)});
    auto line = lines_.find(user);
    if (line == lines_.end()) {
      Lines made;
      line = lines_.emplace(user, made.insert(made.end(), Line{user})).first;
      resting_.splice(resting_.end(), made);
    }
    place->line = line->second;
    place->line->resting.splice(place->line->resting.end(), entry);
    return place;
  }
  /// Also while it waits.
  Member leave(Place place) noexcept {
    rest(place);
    Member member = std::move(place->member);
    const auto line = place->line;
    line->resting.erase(place);
    if (line->resting.empty() && line->waiting.empty()) {
      lines_.erase(line->user);
      resting_.erase(line);
    }
    return member;
  }
  /// Does nothing if it waits already.
  void wait(Place place) noexcept {
    if (std::exchange(place->waits, true)) return;
    Line& line = *place->line;
    if (line.waiting.empty()) turns_.splice(turns_.end(), resting_, place->line);
    line.waiting.splice(line.waiting.end(), line.resting, place);
  }
  /// It waits no longer, if it did.
  void rest(Place place) noexcept {
    if (!std::exchange(place->waits, false)) return;
    Line& line = *place->line;
    line.resting.splice(line.resting.end(), line.waiting, place);
    if (line.waiting.empty()) resting_.splice(resting_.end(), turns_, place->line);
  }
  /// Whether one waits.
  [[nodiscard]] bool any() const noexcept { return !turns_.empty(); }
  /// Whose turn it is: it waits no longer, and all other users that wait come before its user's next turn. If any().
  Place take() noexcept {
    turns_.splice(turns_.end(), turns_, turns_.begin());
    const Place place = turns_.back().waiting.begin();
    rest(place);
    return place;
  }

 private:
  std::map<User, typename Lines::iterator> lines_;  ///< Of users that have a member.
  Lines turns_;                                     ///< In which one waits, the next one first.
  Lines resting_;                                   ///< The others.
};

}  // namespace lrpc::shim
