// Many idle bindings of one server, held by several client processes.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "core/turns.h"
#include "lrpc/detail/client/import/binding.h"

namespace lrpc::bench {

/// Constructed in the bench's own process, while that has one thread.
class Crowd {
 public:
  static constexpr std::uint32_t kBindingsPerProcess = 2000;
  /// Starts the processes that `most` bindings need. None binds yet.
  static Result<std::unique_ptr<Crowd>> create(const ImportOptions& options, std::uint32_t most);

  /// Imports until there are `bindings` (at most create()'s `most`); blocks until done. If an import fails there are
  /// fewer, and why_not() gives the reason.
  Status bind_up_to(std::uint32_t bindings);
  /// Makes one call through each binding that has not made any. Blocks until done.
  Status call_new_ones();

  [[nodiscard]] std::uint32_t bindings() const noexcept;
  [[nodiscard]] const std::string& why_not() const noexcept { return why_not_; }
  /// How many ticks the imports of the last bind_up_to() took together; imports() is their number.
  [[nodiscard]] std::uint64_t import_ticks() const noexcept { return import_ticks_; }
  [[nodiscard]] std::uint32_t imports() const noexcept { return imports_; }
  [[nodiscard]] std::vector<pid_t> pids() const;

 private:
  struct Desk {
    TurnDesk turns;
    std::uint32_t target;  ///< The number of bindings to reach.
    bool call;             ///< Call through the new bindings instead of importing.
    std::uint32_t bound;
    std::uint64_t import_ticks;  ///< Of this turn's imports.
    char why_not[256];           ///< Empty unless an import has failed.
  };
  using Member = TurnTaker<Desk>;
  Crowd() = default;
  static Result<Member> start_member(const ImportOptions& options);
  static Status take_turn(Member& member);

  std::vector<Member> members_;
  std::string why_not_;
  std::uint64_t import_ticks_ = 0;
  std::uint32_t imports_ = 0;
};

}  // namespace lrpc::bench
