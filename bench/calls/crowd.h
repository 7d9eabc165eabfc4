// Many bindings of one server that nobody uses: several client processes that hold them.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "core/turns.h"
#include "lrpc/detail/client/import/binding.h"

namespace lrpc::bench {

/// Made in the bench's own process, while it has one thread.
class Crowd {
 public:
  static constexpr std::uint32_t kBindingsPerProcess = 2000;
  /// Starts the processes that `most` bindings need. None binds yet.
  static Result<std::unique_ptr<Crowd>> create(const ImportOptions& options, std::uint32_t most);

  /// Binds until there are `bindings` (at most those of create()); blocks until done.
  /// If an import fails there are fewer, and why_not() says why.
  Status bind_up_to(std::uint32_t bindings);
  /// Makes one call through each binding that has not made any. Blocks until done.
  Status call_new_ones();

  [[nodiscard]] std::uint32_t bindings() const noexcept;
  [[nodiscard]] const std::string& why_not() const noexcept { return why_not_; }
  /// Ticks that the imports of the last bind_up_to() took, in all, and how many they were.
  [[nodiscard]] std::uint64_t import_ticks() const noexcept { return import_ticks_; }
  [[nodiscard]] std::uint32_t imports() const noexcept { return imports_; }
  [[nodiscard]] std::vector<pid_t> pids() const;

 private:
  struct Desk {
    TurnDesk turns;
    std::uint32_t target;  ///< Bindings that there are to be.
    bool call;             ///< Call through those that have not called; do not bind.
    std::uint32_t bound;
    std::uint64_t import_ticks;  ///< Of this turn.
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

/// Lets this process, and those it forks from now on, have `wanted` descriptors; if the hard limit cannot be raised, as
/// many as that allows. How many there may be.
std::uint64_t raise_descriptor_limit(std::uint64_t wanted) noexcept;

}  // namespace lrpc::bench
