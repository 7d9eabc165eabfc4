// What `lrpc-bench components` measures: the building blocks of a network path, and the operations of the kernel it
// needs.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "alternate.h"
#include "session.h"

namespace lrpc::bench {

/// One row. `subject.name` is its name in the JSON.
struct Component {
  std::string what;                ///< The row's label.
  std::optional<double> paper_us;  ///< Table I (or the text) of The x-Kernel.
  Subject subject;
};

/// Some components and the objects that they work on. Made and used by one thread.
class Components {
 public:
  Components() = default;
  Components(const Components&) = delete;
  Components& operator=(const Components&) = delete;
  virtual ~Components() = default;
  [[nodiscard]] const std::vector<Component>& all() const noexcept { return all_; }

 protected:
  /// One call of `once` makes `operations` operations.
  void add(std::string name, std::string what, std::optional<double> paper_us, std::size_t operations,
           std::function<bool()> once) {
    all_.push_back({std::move(what), paper_us, {std::move(name), std::move(once), operations}});
  }
  /// `one` makes a single operation, and returns whether it succeeded; a call of `once` makes `operations` of them.
  template <class One>
  void add_each(std::string name, std::string what, std::optional<double> paper_us, std::size_t operations, One one) {
    add(std::move(name), std::move(what), paper_us, operations, [one, operations] {
      bool all = true;
      for (std::size_t i = 0; i < operations; ++i) all &= one();
      return all;
    });
  }
  /// Measures the round trips of a contender; each makes `operations` operations.
  void add(std::string name, std::string what, std::optional<double> paper_us, std::size_t operations,
           Contender& contender);
  /// The subject that was added last.
  [[nodiscard]] Subject& last() noexcept { return all_.back().subject; }

 private:
  std::vector<Component> all_;
};

/// Crossings, switches, dispatching, copying. Starts processes and threads, all on the caller's processor.
/// Precondition: the calling process has one thread. Errors: system_error.
Result<std::unique_ptr<Components>> kernel_components(const Seats& seats);
/// Messages, maps, events, sessions, on simulated hosts. Errors: those of composing a graph.
Result<std::unique_ptr<Components>> graph_components();

}  // namespace lrpc::bench
