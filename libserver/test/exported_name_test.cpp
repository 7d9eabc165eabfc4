// The states of a name that a server exports.
#include "clerk/exported_name.h"

#include <gtest/gtest.h>

#include <memory>
#include <vector>

namespace lrpc::server {
namespace {

class ExportedNames : public testing::Test {
 protected:
  ExportedNames() {
    interface_->options.on_registration = [](const Status&) {};
  }
  /// The codes that the program is to be told since the last call of this function.
  std::vector<Errc> told() {
    std::vector<Errc> codes;
    for (const RegistrationNews& one : news_) codes.push_back(one.status.code());
    news_.clear();
    return codes;
  }

  std::shared_ptr<ServedInterface> interface_ = std::make_shared<ServedInterface>();
  std::vector<RegistrationNews> news_;
  ExportedName name_{"name", interface_};
};

using Codes = std::vector<Errc>;
const Error kHungUp{Errc::bad_message, "it hung up"};

TEST_F(ExportedNames, that_the_program_has_not_got_yet_do_not_come_back) {
  EXPECT_FALSE(name_.missing());
  EXPECT_FALSE(name_.to_be_asked_for());
  name_.granted(7, news_);
  EXPECT_TRUE(name_.established());
  EXPECT_EQ(name_.registered(), 7U);
  EXPECT_EQ(told(), Codes{}) << "the program has its id";
}

TEST_F(ExportedNames, that_are_lost_are_asked_for_until_they_are_there_again) {
  name_.granted(7, news_);
  EXPECT_TRUE(name_.lost(kHungUp, news_));
  EXPECT_EQ(told(), Codes{Errc::peer_gone});
  EXPECT_TRUE(name_.to_be_asked_for());
  name_.asked();
  EXPECT_TRUE(name_.under_way());
  EXPECT_FALSE(name_.to_be_asked_for());
  EXPECT_FALSE(name_.lost(kHungUp, news_)) << "that nameserver did not have it";
  EXPECT_EQ(told(), Codes{}) << "it is told once";
  EXPECT_TRUE(name_.to_be_asked_for());
  name_.asked();
  name_.granted(9, news_);
  EXPECT_EQ(told(), Codes{Errc::ok});
  EXPECT_FALSE(name_.missing());
}

TEST_F(ExportedNames, that_are_refused_are_asked_for_again_after_a_pause) {
  name_.granted(7, news_);
  (void)name_.lost(kHungUp, news_);
  name_.asked();
  news_.clear();
  name_.refused({Errc::name_taken, "another has it"}, news_);
  EXPECT_EQ(told(), Codes{Errc::name_taken});
  EXPECT_TRUE(name_.missing());
  EXPECT_FALSE(name_.to_be_asked_for());
  name_.ask_again();
  EXPECT_TRUE(name_.to_be_asked_for());
}

}  // namespace
}  // namespace lrpc::server
