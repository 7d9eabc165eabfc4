// Stacks and bare sockets that are measured in turns, each instance on a wire of its own.
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

/// What a row or a cell measures: a request of so many bytes through what was added under this name, and its answer.
struct Trip {
  std::string_view name;
  std::size_t size = 0;
};

/// Made and used by one thread, which add() seats as a client.
class Field {
 public:
  /// Instances of each stack and of each kind of bare socket. Two of the same stack differ by up to a tenth, by where
  /// their memory and their threads' have come to lie, and stay so: one instance would tell more of that than of the
  /// stack.
  static constexpr std::size_t kInstances = 4;

  explicit Field(Seats seats) : seats_(seats) {}
  /// One more instance, under the stack's name; datagrams are answered with `answer` bytes. Errors: those of making
  /// namespaces, sockets and graphs, with the name in front.
  Status add(const Stack& stack, std::size_t answer = 0);
  /// The same, under `name`; a request is a stream of messages of 1 KiB, the whole of which is answered
  /// (StackClient::stream).
  Status add_stream(std::string_view name, const Stack& stack);
  Status add(SocketKind kind) { return add(name_of(kind), kind, {}); }
  Status add(std::string_view name, SocketKind kind, const Pieces& pieces);

  /// The trips in turns, over all their instances. Precondition: kInstances of each have been added.
  [[nodiscard]] Alternated round_trips(Session& session, std::span<const Trip> trips, std::size_t rounds,
                                       std::chrono::nanoseconds block) const;

 private:
  using Once = std::function<bool(std::size_t size)>;
  Result<WirePair*> add_pair(const Stack& stack);

  const Seats seats_;
  std::vector<std::unique_ptr<WirePair>> stacks_;
  std::vector<std::unique_ptr<BarePair>> bare_;
  std::map<std::string, std::vector<Once>, std::less<>> once_;  ///< One an instance.
};

}  // namespace lrpc::bench
