// Interface texts of clients: which ones are compiled, how often, and how many one user may have.
#include "declarations.h"

#include <gtest/gtest.h>

#include <vector>

#include "lrpc/stubgen/layout/compile.h"

namespace lrpc::sun {
namespace {

constexpr uid_t kUser = 1000;
constexpr uid_t kOther = 1001;

/// The canonical text of an interface, as a stub carries it.
std::string canonical(std::string text) {
  stubgen::Diagnostics diagnostics;
  const stubgen::Source source{"t", std::move(text)};
  const auto interface = stubgen::compile(source, diagnostics);
  EXPECT_TRUE(interface) << diagnostics.text("t");
  return interface ? interface->canonical : std::string();
}
std::string named(const std::string& name) {
  return canonical("interface " + name + " version 1.0 { procedure P(a: int32); }");
}

TEST(Declarations, of_a_user_are_compiled_once_for_as_long_as_they_are_in_use) {
  Declarations declarations;
  const std::string text = named("T");
  auto first = declarations.compiled(kUser, text);
  ASSERT_TRUE(first) << first.error().message();
  EXPECT_EQ((*first)->canonical, text);
  EXPECT_EQ(declarations.compiled(kUser, text).value(), *first);
  EXPECT_NE(declarations.compiled(kOther, text).value(), *first);
}

TEST(Declarations, that_are_not_canonical_are_not_understood) {
  Declarations declarations;
  for (const std::string& text : {std::string(), std::string("interface"), named("T") + " ", std::string(48'000, '{'),
                                  std::string("interface T version 1.0 { procedure P(a: int32); }")})
    EXPECT_EQ(declarations.compiled(kUser, text).code(), Errc::interface_mismatch) << text.substr(0, 100);
}

TEST(Declarations, with_what_sun_rpc_does_not_have_are_refused_by_name) {
  Declarations declarations;
  const auto handles = declarations.compiled(
      kUser, canonical("interface T version 1.0 { handle H; procedure P(); procedure Open() -> (h: H); }"));
  EXPECT_EQ(handles.code(), Errc::not_supported);
  EXPECT_EQ(
      handles.error().message(),
      "interface T cannot call a Sun RPC program: procedure Open: a handle belongs to one binding, and Sun RPC has "
      "none");
  const auto callback = declarations.compiled(
      kUser, canonical("interface T version 1.0 { procedure P(); callback { procedure Tell(a: int32); } }"));
  EXPECT_EQ(callback.code(), Errc::not_supported);
  EXPECT_EQ(callback.error().message(),
            "interface T cannot call a Sun RPC program: it has callbacks, and Sun RPC has none");
}

TEST(Declarations, are_bounded_for_a_user_and_for_all_and_have_room_again_when_they_end) {
  const std::size_t size = named("A").size();
  Declarations declarations(size * 4);
  std::vector<std::shared_ptr<const stubgen::Interface>> kept;
  const auto take = [&](uid_t user, const std::string& name) {
    auto made = declarations.compiled(user, named(name));
    if (made) kept.push_back(*made);
    return made.code();
  };
  EXPECT_EQ(take(kUser, "A"), Errc::ok);
  EXPECT_EQ(take(kUser, "B"), Errc::ok);
  EXPECT_EQ(take(kUser, "C"), Errc::limit_reached);
  EXPECT_EQ(take(kUser, "A"), Errc::ok) << "it is there already";
  EXPECT_EQ(take(kOther, "A"), Errc::ok);
  EXPECT_EQ(take(kOther, "B"), Errc::limit_reached) << "the next user is to find some, too";
  EXPECT_EQ(take(kOther + 1, "A"), Errc::ok);
  EXPECT_EQ(take(kOther + 2, "A"), Errc::limit_reached) << "all are taken";
  kept.clear();
  EXPECT_EQ(take(kUser, "C"), Errc::ok);
}

}  // namespace
}  // namespace lrpc::sun
