// Users take turns, however much work one of them has. Pure.
#pragma once

#include <list>
#include <map>
#include <utility>

namespace lrpc::shim {

/// Each user has members, for instance watched descriptors. Its waiting members form a line, in the order in which they
/// began to wait. The first of each line is taken, one user after the other, round after round. Only join() allocates.
/// Not thread-safe.
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
  /// A member's place, valid from join() to leave().
  using Place = typename Entries::iterator;

  /// Adds a member, which does not wait yet. Throws std::bad_alloc; then nothing is changed.
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
  /// Removes a member, even while it waits.
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
  /// The member waits from now on. Does nothing if it waits already.
  void wait(Place place) noexcept {
    if (std::exchange(place->waits, true)) return;
    Line& line = *place->line;
    if (line.waiting.empty()) turns_.splice(turns_.end(), resting_, place->line);
    line.waiting.splice(line.waiting.end(), line.resting, place);
  }
  /// The member no longer waits, if it did.
  void rest(Place place) noexcept {
    if (!std::exchange(place->waits, false)) return;
    Line& line = *place->line;
    line.resting.splice(line.resting.end(), line.waiting, place);
    if (line.waiting.empty()) resting_.splice(resting_.end(), turns_, place->line);
  }
  /// Whether any member waits.
  [[nodiscard]] bool any() const noexcept { return !turns_.empty(); }
  /// The member whose turn it is. It no longer waits, and all other waiting users come before its user's next turn.
  /// Precondition: any().
  Place take() noexcept {
    turns_.splice(turns_.end(), turns_, turns_.begin());
    const Place place = turns_.back().waiting.begin();
    rest(place);
    return place;
  }

 private:
  std::map<User, typename Lines::iterator> lines_;  ///< Of all users that have members.
  Lines turns_;                                     ///< Lines with a waiting member; the next turn's first.
  Lines resting_;                                   ///< The other lines.
};

}  // namespace lrpc::shim
