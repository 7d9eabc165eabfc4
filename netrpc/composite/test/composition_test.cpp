// Why a composition is refused.
#include "netrpc/composite/composite.h"

#include <gtest/gtest.h>

#include <array>
#include <string>
#include <vector>

#include "netrpc/composite/test/two.h"

namespace lrpc::netrpc::composite {
namespace {

using Errors = std::vector<std::string>;
Errors errors_of(const std::vector<const MicroKind*>& kinds) {
  Errors texts;
  for (const auto& error : check_composition(kinds)) texts.push_back(error.text);
  return texts;
}

TEST(Composition, is_checked_before_anything_runs) {
  const MicroKind a = exporting(kind_of("A", {}, {}), {"Gone"});
  MicroKind b = kind_of("B", {"Gone", "Message_Inserted_Into_Bag"}, {});
  b.needs = {{"A"}, {"C", "D"}};
  b.excludes = {"E"};
  const MicroKind c = kind_of("C", {}, {});
  MicroKind e = kind_of("E", {}, {});
  const MicroKind other = exporting(kind_of("OTHER", {}, {}), {"Gone"});
  MicroKind first = kind_of("FIRST", {}, {});
  MicroKind second = kind_of("SECOND", {}, {});
  first.verifies = second.verifies = true;
  EXPECT_EQ(errors_of({&a, &b, &c}), Errors{});
  EXPECT_EQ(errors_of({&b, &c}),
            (Errors{"B imports 'Gone', which nobody exports, add a micro-protocol that does, or take B out",
                    "B needs A, add it"}));
  EXPECT_EQ(errors_of({&a, &b}), Errors{"B needs C or D, add it"});
  EXPECT_EQ(errors_of({&a, &b, &c, &e}), Errors{"B and E exclude each other, take one out"});
  e.excludes = {"B"};
  EXPECT_EQ(errors_of({&a, &b, &c, &e}), Errors{"B and E exclude each other, take one out"}) << "once, if both say it";
  EXPECT_EQ(errors_of({&a, &a}),
            (Errors{"A is there twice, take one out", "A exports 'Gone', which another one exports already"}));
  EXPECT_EQ(errors_of({&a, &other}), Errors{"OTHER exports 'Gone', which another one exports already"});
  EXPECT_EQ(errors_of({&first, &second}),
            Errors{"SECOND verifies messages, and another one does already, take one out"});
  const MicroKind curious = exporting(kind_of("CURIOUS", {"Message_Popped_To_CP"}, {}), {"B.Gone"});
  EXPECT_EQ(errors_of({&curious}),
            (Errors{"CURIOUS exports 'B.Gone', name it without '.'",
                    "CURIOUS imports 'Message_Popped_To_CP', which only one that verifies may, import "
                    "'Message_Inserted_Into_Bag'"}));
}

TEST(Composition, looks_for_what_others_declare_as_often_as_it_is_told_to) {
  SimHosts net(1);
  const Shepherd inside(net[0].monitor());
  int looked = 0;
  const auto looks = [&](MicroParts& parts) {
    for (int i = 0; i < 20; ++i) parts.later([&](MicroParts& all) { all.later([&](MicroParts&) { ++looked; }); });
  };
  EXPECT_TRUE(Framework::make(net[0].host(), "cp", net[0].ip(), {{kind_of("LOOKS", {}, looks)}}));
  EXPECT_EQ(looked, 20);
}

TEST(Composition, holds_micro_protocols_to_what_their_kinds_say) {
  SimHosts net(1);
  const Shepherd inside(net[0].monitor());
  const auto refusal = [&](std::vector<Part> parts) {
    const auto made = Framework::make(net[0].host(), "cp", net[0].ip(), std::move(parts));
    EXPECT_EQ(made.code(), Errc::invalid_argument);
    return made ? std::string() : made.error().text;
  };
  static constexpr EventName<int> kGone{"Gone"};
  static constexpr EventName<std::uint64_t> kGoneElsewhere{"Gone"};
  const auto ignore = [](int) {};
  EXPECT_EQ(refusal({{kind_of("A", {}, [&](MicroParts& parts) { parts.handle(kGone, ignore); })}}),
            "cp: A: its kind does not import 'Gone'");
  EXPECT_EQ(refusal({{kind_of("A", {}, [](MicroParts& parts) { (void)parts.exported(kGone); })}}),
            "cp: A: its kind does not export 'Gone'");
  const auto raises = [](MicroParts& parts) { (void)parts.exported(kGone); };
  const auto handles = [](MicroParts& parts) { parts.handle(kGoneElsewhere, [](std::uint64_t) {}); };
  EXPECT_EQ(refusal({{exporting(kind_of("A", {}, raises), {"Gone"})}, {kind_of("B", {"Gone"}, handles)}}),
            "cp: B: event 'Gone' has other parameters");
  const auto declares = [](MicroParts& parts) {
    (void)parts.attribute<int>("state", Visibility::of_all);
    (void)parts.attribute<int>("private");
  };
  EXPECT_EQ(refusal({{kind_of("A", {}, declares)}, {kind_of("B", {}, declares)}}),
            "cp: B: attribute 'state' is A's already");
  const auto looks = [](MicroParts& parts) {
    parts.later([](MicroParts& all) {
      (void)all.public_attribute<int>("state");
      (void)all.public_attribute<int>("private");
      (void)all.public_attribute<char>("state");
    });
  };
  EXPECT_EQ(refusal({{kind_of("B", {}, looks)}, {kind_of("A", {}, declares)}}),
            "cp: B: nobody has a public attribute 'private'; B: attribute 'A.state' has another type");
  const auto large = [](MicroParts& parts) {
    (void)parts.attribute<std::array<char, 200>>("large");
    (void)parts.attribute<std::array<char, 8>>("bytes", Visibility::of_owner, InHeader::yes);
  };
  EXPECT_EQ(
      refusal({{kind_of("A", {}, large)}}),
      "cp: A: attributes of more than 192 bytes; A: attribute 'bytes' is no integer, and cannot travel in the header");
  const auto greedy = [](MicroParts& parts) {
    for (int i = 0; i < 64; ++i) (void)parts.send_bit();
  };
  EXPECT_EQ(refusal({{kind_of("A", {}, greedy)}}),
            "cp: A: more than 63 micro-protocols have a say in when messages leave");
}

constexpr ProcedureName<int(int)> kTwice{"Twice"};

TEST(Composition, procedures_go_to_who_imports_them) {
  SimHosts net(1);
  const Shepherd inside(net[0].monitor());
  const auto refusal = [&](std::vector<Part> parts) {
    const auto made = Framework::make(net[0].host(), "cp", net[0].ip(), std::move(parts));
    return made ? std::string() : made.error().text;
  };
  const MicroKind twice = exporting(
      kind_of("TWICE", {},
              [](MicroParts& parts) { parts.exported_procedure(kTwice, [](int number) { return 2 * number; }); }),
      {kTwice.name});
  int answer = 0;
  const MicroKind asks = kind_of("ASKS", {kTwice.name}, [&](MicroParts& parts) {
    parts.later([&](MicroParts& all) {
      if (const auto* const procedure = all.procedure(kTwice)) answer = (*procedure)(21);
    });
  });
  EXPECT_EQ(refusal({{asks}, {twice}}), "");
  EXPECT_EQ(answer, 42);
  EXPECT_EQ(refusal({{asks}}),
            "cp: ASKS imports 'Twice', which nobody exports, add a micro-protocol that does, or take ASKS out");
  EXPECT_EQ(refusal({{asks}, {exporting(kind_of("TWICE", {}, [](MicroParts&) {}), {kTwice.name})}}),
            "cp: ASKS: procedure 'Twice' is not there");
  EXPECT_EQ(refusal({{asks},
                     {exporting(kind_of("TWICE", {},
                                        [](MicroParts& parts) {
                                          parts.exported_procedure(ProcedureName<void()>{"Twice"}, [] {});
                                        }),
                                {kTwice.name})}}),
            "cp: ASKS: procedure 'Twice' has another type");
  EXPECT_EQ(refusal({{kind_of("ASKS", {}, [](MicroParts& parts) { (void)parts.procedure(kTwice); })}}),
            "cp: ASKS: its kind does not import 'Twice'");
}

}  // namespace
}  // namespace lrpc::netrpc::composite
