// Stacks and bare sockets that are measured in turns. Each instance has a wire of its own.
#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "layers/alternate.h"
#include "session.h"
#include "wire_pair.h"

namespace lrpc::bench {

/// What a row or a cell measures: a request of `size` bytes through the stack or socket that was added as `name`, and
/// its answer.
struct Trip {
  std::string_view name;
  std::size_t size = 0;
};

/// Made and used by one thread, which add() pins to the client's seat.
class Field {
 public:
  /// Instances of each stack and of each kind of bare socket. Two instances of the same stack differ constantly by up
  /// to a tenth, depending on where they and their threads have their memory. Measuring only one would show that rather
  /// than the stack.
  static constexpr std::size_t kInstances = 4;

  explicit Field(Seats seats) : seats_(seats) {}
  /// Adds an instance under the stack's name; datagrams are answered with `answer` bytes. Errors: those of making
  /// namespaces, sockets and graphs, prefixed with the name.
  Status add(const Stack& stack, std::size_t answer = 0);
  /// Adds an instance under `name` whose request is a stream of messages of 1 KiB with one answer for the whole stream
  /// (StackClient::stream).
  Status add_stream(std::string_view name, const Stack& stack);
  Status add(SocketKind kind) { return add(name_of(kind), kind, {}); }
  Status add(std::string_view name, SocketKind kind, const Pieces& pieces);

  /// Measures the trips in turns, over all their instances. Precondition: kInstances of each have been added.
  [[nodiscard]] Alternated round_trips(Session& session, std::span<const Trip> trips, std::size_t rounds,
                                       std::chrono::nanoseconds block) const;

 private:
  using Once = std::function<bool(std::size_t size)>;
  Result<WirePair*> add_pair(const Stack& stack);

  const Seats seats_;
  std::vector<std::unique_ptr<WirePair>> stacks_;
  std::vector<std::unique_ptr<BarePair>> bare_;
  std::map<std::string, std::vector<Once>, std::less<>> once_;  ///< One for each instance.
};

}  // namespace lrpc::bench
