#include "field.h"

#include <fmt/format.h>

namespace lrpc::bench {

Result<WirePair*> Field::add_pair(const Stack& stack) {
  auto pair = WirePair::create(stack, seats_);
  if (!pair) return Error{pair.code(), fmt::format("{}: {}", stack.name, pair.error().message())};
  stacks_.push_back(std::move(*pair));
  return stacks_.back().get();
}

Status Field::add(const Stack& stack, std::size_t answer) {
  const auto pair = add_pair(stack);
  if (!pair) return pair.error();
  (*pair)->answer_with(answer);
  once_[std::string(stack.name)].push_back(
      [trips = &(*pair)->trips()](std::size_t size) { return trips->once(size) == Errc::ok; });
  return {};
}

Status Field::add_stream(std::string_view name, const Stack& stack) {
  constexpr std::size_t kWrite = 1024;
  const auto pair = add_pair(stack);
  if (!pair) return pair.error();
  (*pair)->answer_with(1, StackClient::kAnswered);
  once_[std::string(name)].push_back(
      [trips = &(*pair)->trips()](std::size_t size) { return trips->stream(size / kWrite, kWrite) == Errc::ok; });
  return {};
}

Status Field::add(std::string_view name, SocketKind kind, const Pieces& pieces) {
  auto pair = BarePair::create(kind, seats_, pieces);
  if (!pair) return Error{pair.code(), fmt::format("{}: {}", name, pair.error().message())};
  once_[std::string(name)].push_back([bare = pair->get()](std::size_t size) { return bare->once(size); });
  bare_.push_back(std::move(*pair));
  return {};
}

Alternated Field::round_trips(Session& session, std::span<const Trip> trips, std::size_t rounds,
                              std::chrono::nanoseconds block) const {
  std::vector<Subject> subjects;
  for (std::size_t instance = 0; instance < kInstances; ++instance)
    for (const Trip& trip : trips) {
      const Once& once = once_.find(trip.name)->second[instance];
      subjects.push_back({std::string(trip.name), [&once, size = trip.size] { return once(size); }});
    }
  return pooled(alternate(subjects, session.clock(), rounds, block), trips.size());
}

}  // namespace lrpc::bench
