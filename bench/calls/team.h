// One strategy's processes in a cell of the scenario matrix: a server, and one or two clients that call it whenever it
// is their turn and sleep otherwise.
#pragma once

#include <array>
#include <chrono>
#include <memory>
#include <string_view>
#include <vector>

#include "core/contender.h"
#include "core/matrix_cell.h"
#include "core/ticks.h"
#include "core/turns.h"
#include "load/hog.h"
#include "lrpc/detail/shim/binder/binder_protocol.h"
#include "report/histogram.h"

namespace lrpc::bench {

class LrpcDomains;

/// How a call is made: a gate of ours, or by plain futexes, without any of our libraries.
enum class Strategy { exchange, handoff, sleep, adaptive, plain_futex };
[[nodiscard]] std::string_view name(Strategy strategy) noexcept;

/// Where a slice's calls are counted. The rounds that choose the best fixed strategy are not those that judge.
enum class Book : std::uint32_t { choosing = 0, judging = 1, none };

/// What a team is asked to do in its turn.
struct Slice {
  std::chrono::nanoseconds untimed{};  ///< Calls for this long first, not counted.
  std::chrono::nanoseconds timed{};    ///< Then each call is timed and counted; at least one.
  std::uint64_t most_untimed = ~std::uint64_t{0};
  Book book = Book::none;
};

/// Which part of a team a process is.
struct TeamProcess {
  std::string_view what;
  pid_t pid;
};

/// Made in the bench's own process, while it has one thread.
class Team {
 public:
  /// Starts server and clients, and binds. Returns once all sleep. `around` must outlive the team.
  static Result<std::unique_ptr<Team>> create(Strategy strategy, const Cell& cell, const Cores& cores,
                                              const Surroundings& around, const TickClock& clock);

  /// Lets the clients call, all at the same time, and waits until they have done so and the server has parked.
  Status run(const Slice& slice);
  [[nodiscard]] Strategy strategy() const noexcept { return strategy_; }
  /// The calls of all clients so far, in ticks.
  [[nodiscard]] Histogram counted(Book book) const;
  /// Nameserver, server (not those of plain futexes) and clients.
  [[nodiscard]] std::vector<TeamProcess> processes() const;

 private:
  struct Desk {
    TurnDesk turns;
    Slice slice;
    std::array<Histogram, 2> books;
  };
  struct Client {
    std::unique_ptr<Contender> contender;
    TurnTaker<Desk> process;  // goes before its server, so that it does not see its peer die
  };
  explicit Team(Strategy strategy) : strategy_(strategy) {}
  static Result<TurnTaker<Desk>> start_client(Contender& contender, const Seat& seat, const Cell& cell,
                                              const TickClock& clock);
  Status await(std::chrono::nanoseconds at_least);

  Strategy strategy_;
  std::shared_ptr<LrpcDomains> domains_;  ///< None for plain futexes.
  std::vector<Client> clients_;           // go before the server
};

}  // namespace lrpc::bench
