#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <regex>
#include <string_view>

#include "situation.h"

namespace lrpc::bench {
namespace {

using namespace std::chrono_literals;
using Where = Situation::Where;
using Shape = Situation::Shape;

std::vector<Situation> patterns() {
  return {{.name = "back to back"},
          {.name = "think 1 us", .think = 1us},
          {.name = "think 10 us", .think = 10us},
          {.name = "think 100 us", .think = 100us},
          {.name = "think 1 ms", .think = 1ms},
          {.name = "sleep 1 us", .sleep = 1us},
          {.name = "sleep 10 us", .sleep = 10us},
          {.name = "sleep 100 us", .sleep = 100us},
          {.name = "sleep 1 ms", .sleep = 1ms},
          {.name = "bursts of 2 ms", .burst = 2ms},
          {.name = "procedure of 5 us", .procedure = 5us},
          {.name = "procedure of 50 us", .procedure = 50us},
          {.name = "procedure of 500 us", .procedure = 500us},
          {.name = "5 us each 8th call", .procedure = 5us, .slow_each = 8},
          {.name = "50 us each 8th call", .procedure = 50us, .slow_each = 8},
          {.name = "500 us each 8th call", .procedure = 500us, .slow_each = 8},
          {.name = "8 started at once", .started = 8},
          {.name = "chain of 3 domains", .shape = Shape::chain},
          {.name = "nested callbacks", .shape = Shape::callbacks},
          {.name = "2 threads", .threads = 2},
          {.name = "4 threads", .threads = 4},
          {.name = "2 clients", .clients = 2},
          {.name = "4 clients", .clients = 4},
          {.name = "2 servers", .clients = 2, .servers = 2},
          {.name = "4 servers", .clients = 4, .servers = 4},
          {.name = "2 servers in turn", .servers = 2, .in_turn = true},
          {.name = "4 servers in turn", .servers = 4, .in_turn = true}};
}

/// How a situation differs from a pattern.
struct Variant {
  std::string_view name;
  void (*make)(Situation&);
};

/// Only for patterns with one client and one thread.
constexpr std::array<Variant, 2> kApart{{
    {"a processor each", [](Situation& s) { s.where = Where::apart; }},
    {"server confined", [](Situation& s) { s.where = Where::server_confined; }},
}};
constexpr Variant kOneProcessor{"one processor", [](Situation& s) { s.where = Where::one_processor; }};
constexpr std::array<Variant, 4> kBeside{{
    {"a hog", [](Situation& s) { s.hogs = 1; }},
    {"2 hogs", [](Situation& s) { s.hogs = 2; }},
    {"a third party", [](Situation& s) { s.third_party = true; }},
    {"a build", [](Situation& s) { s.build = true; }},
}};
/// The patterns that have the variants of kSpecial.
constexpr std::array<std::string_view, 3> kFew{"back to back", "think 10 us", "sleep 1 ms"};
constexpr std::array<Variant, 6> kSpecial{{
    {"half a processor", [](Situation& s) { s.processors = 0.5; }},
    {"a tenth of a hog's weight",
     [](Situation& s) {
       s.weight = 0.1;
       s.hogs = 1;
     }},
    {"SCHED_FIFO", [](Situation& s) { s.fifo = true; }},
    {"moved each 10 ms", [](Situation& s) { s.where = Where::moved; }},
    {"a processor each, later", [](Situation& s) { s.where = Where::apart_later; }},
    {"a processor offline", [](Situation& s) { s.where = Where::one_offline; }},
}};
/// The patterns that also run on parts of a larger machine.
constexpr std::array<std::string_view, 5> kScaled{"back to back", "think 10 us", "sleep 1 ms", "4 threads",
                                                  "4 clients"};
constexpr std::array<Variant, 3> kParts{{
    {"2 processors", [](Situation& s) { s.among = 2; }},
    {"4 processors", [](Situation& s) { s.among = 4; }},
    {"16 processors", [](Situation& s) { s.among = 16; }},
}};

constexpr std::array<std::string_view, 20> kPlainest{"back to back",
                                                     "think 10 us",
                                                     "think 100 us",
                                                     "think 1 ms",
                                                     "sleep 1 ms",
                                                     "procedure of 5 us",
                                                     "50 us each 8th call",
                                                     "chain of 3 domains",
                                                     "nested callbacks",
                                                     "2 threads",
                                                     "2 clients",
                                                     "4 servers",
                                                     "back to back, a processor each",
                                                     "back to back, a processor each, later",
                                                     "back to back, server confined",
                                                     "back to back, one processor",
                                                     "back to back, a hog",
                                                     "back to back, a build",
                                                     "think 10 us, 2 hogs",
                                                     "think 10 us, a third party"};

Situation with(Situation pattern, const Variant& variant) {
  pattern.name += fmt::format(", {}", variant.name);
  variant.make(pattern);
  return pattern;
}

template <std::size_t N>
bool among(const std::array<std::string_view, N>& names, const Situation& situation) {
  return std::ranges::find(names, situation.name) != names.end();
}

}  // namespace

std::vector<Situation> situations() {
  const std::vector<Situation> all_patterns = patterns();
  std::vector<Situation> all = all_patterns;
  for (const Situation& pattern : all_patterns) {
    if (pattern.threads == 1 && pattern.clients == 1)
      for (const Variant& variant : kApart) all.push_back(with(pattern, variant));
    all.push_back(with(pattern, kOneProcessor));
  }
  all.push_back({.name = "2 clients, a processor each", .clients = 2, .where = Where::clients_apart});
  for (const Situation& pattern : all_patterns)
    for (const Variant& variant : kBeside) all.push_back(with(pattern, variant));
  const auto add = [&](const auto& few, const auto& variants) {
    for (const Situation& pattern : all_patterns)
      for (const Variant& variant : variants)
        if (among(few, pattern)) all.push_back(with(pattern, variant));
  };
  add(kFew, kSpecial);
  add(kScaled, kParts);
  return all;
}

std::vector<Situation> plainest() {
  std::vector<Situation> all = situations();
  std::erase_if(all, [](const Situation& one) { return !among(kPlainest, one); });
  return all;
}

Result<std::vector<Situation>> chosen(std::vector<Situation> all, const std::string& expression) {
  try {
    const std::regex wanted(expression);
    std::erase_if(all, [&](const Situation& one) { return !std::regex_search(one.name, wanted); });
  } catch (const std::regex_error& error) {
    return Error{Errc::invalid_argument, fmt::format("'{}' is no regular expression: {}", expression, error.what())};
  }
  return all;
}

std::optional<std::string> obstacle(const Situation& situation, unsigned processors) {
  const bool one_will_do = situation.where == Where::anywhere || situation.where == Where::one_processor;
  if (processors < 2 && !one_will_do) return "there is one processor";
  if (situation.among > processors) return fmt::format("there are only {} processors", processors);
  if (situation.among == processors) return "every situation has just these";
  return std::nullopt;
}

}  // namespace lrpc::bench
