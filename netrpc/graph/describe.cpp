// Checks the statements of a description against the kinds of protocols.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <unordered_map>

#include "netrpc/graph/options.h"
#include "netrpc/graph/syntax.h"

namespace lrpc::netrpc {

namespace {

char lower_case(char c) noexcept { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

/// The number of characters to change, add or remove to make `a` into `b`, ignoring case.
std::size_t distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::size_t diagonal = std::exchange(row[0], i);
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t change = diagonal + (lower_case(a[i - 1]) == lower_case(b[j - 1]) ? 0 : 1);
      diagonal = row[j];
      row[j] = std::min({change, row[j] + 1, row[j - 1] + 1});
    }
  }
  return row[b.size()];
}

/// " (did you mean 'CHANNEL'?)" or nothing.
std::string suggestion(std::string_view wrong, const std::vector<std::string_view>& candidates) {
  std::string_view best;
  std::size_t least = std::max<std::size_t>(1, std::min<std::size_t>(3, wrong.size() / 3)) + 1;
  for (const std::string_view candidate : candidates) {
    const std::size_t changes = distance(wrong.substr(0, 64), candidate.substr(0, 64));
    if (changes >= least || changes >= wrong.size()) continue;
    least = changes;
    best = candidate;
  }
  return best.empty() ? std::string() : fmt::format(" (did you mean '{}'?)", best);
}

std::string_view name_of(Service service) noexcept {
  return service == Service::datagram ? "delivers messages" : "answers calls";
}

class Checker {
 public:
  Checker(const std::vector<GraphStatement>& statements, const ProtocolKinds& kinds, GraphErrors& errors)
      : statements_(statements), kinds_(kinds), errors_(errors) {
    // The line of the last definition of each name, for names that are used above their definition.
    for (const GraphStatement& statement : statements_) lines_[statement.name] = statement.line;
  }

  std::vector<InstanceDescription> run() {
    if (statements_.size() > GraphDescription::kMaxInstances) {
      errors_.add(statements_[GraphDescription::kMaxInstances].line,
                  fmt::format("more than {} protocols in one graph, take some out", GraphDescription::kMaxInstances));
      return {};
    }
    if (statements_.empty() && errors_.empty())
      errors_.add(1, "the description defines no protocol, write name = KIND; at least once");
    for (const GraphStatement& statement : statements_) check(statement);
    return std::move(instances_);
  }

 private:
  /// What is known about a name that is defined above. `gives` is empty if its line is wrong.
  struct Known {
    int line = 0;
    std::optional<Service> gives;
    bool many_ports = false;
    bool repeats = false;
    bool needs_port = false;
  };

  void check(const GraphStatement& statement) {
    if (const auto known = known_.find(statement.name); known != known_.end())
      errors_.add(statement.line, fmt::format("'{}' is defined in line {} already, choose another name", statement.name,
                                              known->second.line));
    InstanceDescription instance;
    instance.name = statement.name;
    instance.kind = statement.kind;
    instance.line = statement.line;
    std::optional<Service> gives;
    bool needs_port = false;
    if (const ProtocolKind* const kind = kinds_.find(statement.kind); kind != nullptr) {
      check_options(kind->name, kind->options, statement.options, statement.damaged ? 0 : statement.line,
                    instance.options);
      const std::optional<ProtocolKind::Given> inside = check_inside(statement, *kind, instance);
      gives = check_below(statement, *kind);
      check_ports(statement, *kind);
      instance.many_ports_below = any_below(statement, &Known::many_ports);
      instance.many_ports = (kind->many_ports && kind->many_ports(instance.options)) ||
                            (instance.many_ports_below && !kind->identifies_hosts);
      needs_port = kind->needs_port || any_below(statement, &Known::needs_port);
      instance.repeats = kind->repeats || any_below(statement, &Known::repeats);
      if (inside) {
        gives = inside->gives;
        instance.repeats = inside->repeats;
      } else if (kind->inside_gives) {
        gives.reset();
      }
    } else if (!statement.kind.empty()) {
      std::vector<std::string_view> names;
      for (const ProtocolKind& each : kinds_.all()) names.push_back(each.name);
      errors_.add(statement.line, fmt::format("there is no kind of protocol '{}'{}, use one of {}", statement.kind,
                                              suggestion(statement.kind, names), fmt::join(names, ", ")));
      for (const GraphStatement::Lower& lower : statement.below) (void)find(lower);
    }
    for (const GraphStatement::Lower& lower : statement.below) instance.below.push_back(lower.name);
    instance.gives = gives.value_or(Service::datagram);
    known_.emplace(statement.name, Known{statement.line, gives, instance.many_ports, instance.repeats, needs_port});
    instances_.push_back(std::move(instance));
  }

  /// `line`: the line of the protocol or micro-protocol that has the options. 0: missing required options are not
  /// reported.
  void check_options(std::string_view kind, const std::vector<OptionDescription>& known,
                     const std::vector<GraphStatement::Option>& all, int line, Options& options) {
    std::vector<std::string_view> names;
    for (const OptionDescription& option : known) names.push_back(option.name);
    for (const GraphStatement::Option& given : all) {
      const auto option =
          std::ranges::find_if(known, [&](const OptionDescription& each) { return each.name == given.name; });
      if (option == known.end()) {
        errors_.add(given.line,
                    fmt::format("{} has no option '{}'{}, {}", kind, given.name, suggestion(given.name, names),
                                names.empty() ? std::string("it has none at all")
                                              : fmt::format("it has {}", fmt::join(names, ", "))));
      } else if (options.has(given.name)) {
        errors_.add(given.line, fmt::format("the option '{}' is given twice, take one out", given.name));
      } else {
        const bool fits = given.list.has_value() == (option->type == OptionType::list);
        if (!fits || !conforms(option->type, given.value))
          errors_.add(given.line, fmt::format("{} is no value for the option '{}' of {}, write {}",
                                              given.list ? "a list" : "'" + given.value + "'", given.name, kind,
                                              describe(option->type)));
        else if (!in_range(*option, given.value))
          errors_.add(given.line, fmt::format("'{}' is out of range for the option '{}' of {}, write {}", given.value,
                                              given.name, kind, describe_range(*option)));
        given.list ? options.set_list(given.name, *given.list) : options.set(given.name, given.value);
      }
    }
    if (line == 0) return;
    for (const OptionDescription& option : known)
      if (option.required && !options.has(option.name))
        errors_.add(line, fmt::format("{} needs the option '{}' ({}), write {}({} = ...)", kind, option.name,
                                      option.summary, kind, option.name));
  }

  /// What the instance gives because of its micro-protocols; nullopt if that is not known, or they make no
  /// difference.
  std::optional<ProtocolKind::Given> check_inside(const GraphStatement& statement, const ProtocolKind& kind,
                                                  InstanceDescription& instance) {
    if (!statement.inside) {
      if (!kind.inside.empty() && !statement.damaged)
        errors_.add(statement.line,
                    fmt::format("{} is made of micro-protocols, write {} {{ ...; }}", kind.name, kind.name));
      return {};
    }
    const auto& inside = *statement.inside;
    if (kind.inside.empty()) {
      errors_.add(statement.line, fmt::format("{} has no micro-protocols, take the braces out", kind.name));
      return {};
    }
    if (inside.size() > GraphDescription::kMaxInside) {
      errors_.add(inside.back().line, fmt::format("{} micro-protocols in '{}', use at most {}", inside.size(),
                                                  statement.name, GraphDescription::kMaxInside));
      return {};
    }
    std::vector<std::string_view> known;
    for (const ProtocolKind::Micro& each : kind.inside) known.push_back(each.name);
    std::vector<std::string> names;
    for (const GraphStatement::Micro& given : inside) {
      MicroDescription& micro = instance.inside.emplace_back(MicroDescription{given.kind, {}, given.line});
      const auto found = std::ranges::find(known, given.kind);
      if (found == known.end()) {
        errors_.add(given.line, fmt::format("there is no micro-protocol '{}'{}, use one of {}", given.kind,
                                            suggestion(given.kind, known), fmt::join(known, ", ")));
        continue;
      }
      const auto& options = kind.inside[static_cast<std::size_t>(found - known.begin())].options;
      check_options(given.kind, options, given.options, given.line, micro.options);
      names.push_back(given.kind);
    }
    if (names.size() != inside.size() || statement.damaged) return {};
    if (kind.check_inside)
      for (ProtocolKind::MicroError& error : kind.check_inside(names))
        errors_.add(inside.empty() ? statement.line : inside[error.at].line, std::move(error.text));
    if (kind.draw_inside) instance.drawn_inside = kind.draw_inside(names);
    if (!kind.inside_gives) return {};
    return kind.inside_gives(names);
  }

  /// The service of the instance; nullopt if an error leaves it unknown.
  std::optional<Service> check_below(const GraphStatement& statement, const ProtocolKind& kind) {
    const std::size_t least = kind.below.size();
    const std::size_t given = statement.below.size();
    const bool enough = given >= least || (kind.last_below_optional && given + 1 == least);
    const bool right = enough && (given <= least || (kind.last_below_repeats && least > 0));
    if (!right && !statement.damaged) errors_.add(statement.line, wrong_number(kind, given));
    if (given > GraphDescription::kMaxBelow)
      errors_.add(statement.line, fmt::format("'{}' stands on {} protocols, use at most {}", statement.name, given,
                                              GraphDescription::kMaxBelow));
    std::optional<Service> gives = kind.gives;
    if (kind.transparent) gives.reset();
    for (std::size_t i = 0; i < given; ++i) {
      const Known* const lower = find(statement.below[i]);
      if (lower == nullptr || !lower->gives.has_value()) continue;
      if (kind.transparent) {
        if (i == 0) gives = lower->gives;
        continue;
      }
      if (!right) continue;  // it is not known which role each one has
      const ProtocolKind::Below& role = kind.below[std::min(i, least - 1)];
      if (*lower->gives != role.needs) errors_.add(statement.below[i].line, wrong_service(statement, kind, i, role));
    }
    return gives;
  }

  /// Where a peer of a protocol below is a host and a port, reports an error unless the kind is transparent, tells
  /// ports apart, or identifies hosts without being told their ports.
  void check_ports(const GraphStatement& statement, const ProtocolKind& kind) {
    for (const GraphStatement::Lower& lower : statement.below) {
      const auto known = known_.find(lower.name);
      if (known == known_.end() || !known->second.many_ports) continue;
      if (kind.identifies_hosts && known->second.needs_port)
        errors_.add(lower.line, fmt::format("'{}' has to be told the port of each peer, and {} knows hosts alone, "
                                            "use UDP",
                                            lower.name, kind.name));
      if (kind.transparent || kind.tells_ports_apart || kind.identifies_hosts) continue;
      std::vector<std::string_view> right;
      for (const ProtocolKind& each : kinds_.all())
        if (each.tells_ports_apart || each.identifies_hosts) right.push_back(each.name);
      errors_.add(lower.line,
                  fmt::format("'{}' has peers at any port, and {} does not tell two ports of one host apart, "
                              "use one of {}, or take 'peer_ports = any' out",
                              lower.name, kind.name, fmt::join(right, ", ")));
    }
  }

  /// Whether the member `so` is true for a protocol below.
  [[nodiscard]] bool any_below(const GraphStatement& statement, bool Known::*so) const {
    return std::ranges::any_of(statement.below, [&](const GraphStatement::Lower& lower) {
      const auto known = known_.find(lower.name);
      return known != known_.end() && known->second.*so;
    });
  }

  const Known* find(const GraphStatement::Lower& lower) {
    const auto known = known_.find(lower.name);
    if (known != known_.end()) return &known->second;
    const auto later = lines_.find(lower.name);
    if (later != lines_.end()) {
      errors_.add(lower.line, fmt::format("'{}' is not defined above this line but in line {}, move that line up "
                                          "(what stands below comes first, and nothing stands on itself)",
                                          lower.name, later->second));
    } else {
      std::vector<std::string_view> names;
      for (const auto& [name, unused] : known_) names.push_back(name);
      errors_.add(lower.line, fmt::format("there is no protocol '{}'{}, define it above this line", lower.name,
                                          suggestion(lower.name, names)));
    }
    return nullptr;
  }

  static std::string wrong_number(const ProtocolKind& kind, std::size_t given) {
    if (kind.below.empty()) return fmt::format("{} stands on nothing, take 'over ...' out", kind.name);
    std::vector<std::string_view> roles;
    for (const ProtocolKind::Below& below : kind.below) roles.push_back(below.role);
    const std::size_t count = roles.size();
    return fmt::format("{} stands on {}{} protocol{} ({}{}), not on {}, write over {}", kind.name,
                       kind.last_below_repeats ? "at least " : "", count, count == 1 ? "" : "s", fmt::join(roles, "; "),
                       kind.last_below_optional ? ", which may be left out" : "", given,
                       count == 1 ? "and one name" : fmt::format("and {} names in this order", count));
  }

  [[nodiscard]] std::string wrong_service(const GraphStatement& statement, const ProtocolKind& kind, std::size_t i,
                                          const ProtocolKind::Below& role) const {
    std::vector<std::string_view> right;
    for (const ProtocolKind& each : kinds_.all())
      if (!each.transparent && each.gives == role.needs) right.push_back(each.name);
    const std::string_view lower = statement.below[i].name;
    const Service has = role.needs == Service::datagram ? Service::transaction : Service::datagram;
    return fmt::format("'{}' {}, but {} needs one that {} ({}), use one of {}", lower, name_of(has), kind.name,
                       name_of(role.needs), role.role, fmt::join(right, ", "));
  }

  const std::vector<GraphStatement>& statements_;
  const ProtocolKinds& kinds_;
  GraphErrors& errors_;
  std::map<std::string, Known, std::less<>> known_;  // ordered: suggestions are reproducible
  std::unordered_map<std::string, int> lines_;
  std::vector<InstanceDescription> instances_;
};

}  // namespace

Result<GraphDescription> GraphDescription::parse(std::string_view text, const ProtocolKinds& kinds) {
  GraphErrors errors;
  GraphDescription description;
  if (text.size() > kMaxText) {
    errors.add(1, fmt::format("the description has {} bytes, use at most {}", text.size(), kMaxText));
  } else {
    const std::vector<GraphStatement> statements = parse_graph_statements(split_graph_text(text, errors), errors);
    description.instances_ = Checker(statements, kinds, errors).run();
  }
  if (!errors.empty()) return Error{Errc::invalid_argument, errors.text()};
  return description;
}

}  // namespace lrpc::netrpc
