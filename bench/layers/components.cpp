// Table I of The x-Kernel: the costs of the components of which every protocol is built, in nanoseconds.
#include "components.h"

#include <fmt/format.h>

#include "core/interrupt.h"

namespace lrpc::bench {
namespace {

using namespace std::chrono_literals;

/// While it lives, the calling thread, and the processes and threads that it starts, run on one processor, as in the
/// paper.
class OneProcessor {
 public:
  explicit OneProcessor(const Seat& seat) { sit(seat); }
  OneProcessor(const OneProcessor&) = delete;
  OneProcessor& operator=(const OneProcessor&) = delete;
  ~OneProcessor() { sit(before_); }

 private:
  const Seat before_ = own_seat();
};

Status measure(Session& session, const Table& table, const Result<std::unique_ptr<Components>>& components) {
  if (!components) return components.error();
  std::vector<const Component*> wanted;
  std::vector<Subject> subjects;
  for (const Component& one : (*components)->all()) {
    if (!session.filter().wants("none", name(Placement::one_core), one.subject.name)) continue;
    wanted.push_back(&one);
    subjects.push_back(one.subject);
  }
  const Alternated measured = alternate(subjects, session.clock(), session.quick() ? 50 : 500, 1ms);
  if (interrupted()) return {};
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    if (measured.blocks[i].empty()) {
      session.fail(wanted[i]->what);
      continue;
    }
    const double ns = measured.median_of(i);
    const std::optional<double> paper = wanted[i]->paper_us;
    table.print({wanted[i]->what, number(ns), paper ? fmt::format("{:g}", *paper) : "-",
                 paper ? fmt::format("{:.0f}", *paper * 1000 / ns) : "-"});
    session.emit_json({.bench = "components",
                       .placement = name(Placement::one_core),
                       .test = subjects[i].name,
                       .figures = measured.figures(i)});
  }
  return {};
}

}  // namespace

void Components::add(std::string name, std::string what, std::optional<double> paper_us, std::size_t operations,
                     Contender& contender) {
  add(std::move(name), std::move(what), paper_us, operations, [&contender] {
    contender.run(1);
    return true;
  });
  last().before = [&contender] {
    contender.resume();
    return true;
  };
  last().after = [&contender] { contender.pause(); };
}

void components(Session& session) {
  print_intro("Components (The x-Kernel, Table I): what each costs, ns",
              "Medians of blocks of 1 ms in turns, each component in a loop of its own, everything on one processor. "
              "The paper's are microseconds on a Sun 3/75; \"times\" is how often ours goes into it.");
  const Seats seats = session.cores().seats(Placement::one_core);
  const OneProcessor here(seats.client);
  const Table table{{"component", -64}, {"ns", 9}, {"paper us", 8}, {"times", 7}};
  session.check(measure(session, table, kernel_components(seats)));
  table.print_line();
  session.check(measure(session, table, graph_components()));
}

}  // namespace lrpc::bench
