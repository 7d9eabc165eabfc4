// Which files are trusted, by owner and mode, and up to which size.
#include "lrpc/detail/shim/system/own_file.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

namespace lrpc::shim {
namespace {

class OwnFileTest : public ::testing::Test {
 protected:
  void SetUp() override { ASSERT_NE(::mkdtemp(directory_.data()), nullptr); }
  void TearDown() override { std::filesystem::remove_all(directory_); }
  void write(const std::string& text, mode_t mode) const {
    std::ofstream(file()) << text;
    ASSERT_EQ(::chmod(file().c_str(), mode), 0);
  }
  [[nodiscard]] std::string file() const { return directory_ + "/file"; }
  /// The text, or why it was not read.
  [[nodiscard]] std::string read(const OwnFile& wanted) const {
    std::string text;
    const Status done = read_own_file(file(), wanted, text);
    return done ? text : done.error().message();
  }

 private:
  std::string directory_ = "/tmp/lrpc-own-file.XXXXXX";
};

TEST_F(OwnFileTest, is_read_if_nobody_else_can_write_it) {
  write("text", 0644);
  EXPECT_EQ(read({.most = 10}), "text");
  write("text", 0664);
  EXPECT_EQ(read({.most = 10}),
            file() + " can be written by others than its owner (mode 0664); do: chmod go-w " + file());
  write("text", 0602);
  EXPECT_NE(read({.most = 10}).find("chmod go-w"), std::string::npos);
}

TEST_F(OwnFileTest, is_a_secret_only_if_nobody_else_can_read_it) {
  write("secret", 0600);
  EXPECT_EQ(read({.most = 10, .secret = true}), "secret");
  for (const mode_t mode : {0640U, 0604U, 0620U, 0610U}) {
    write("secret", mode);
    EXPECT_NE(read({.most = 10, .secret = true}).find("do: chmod 600 " + file()), std::string::npos) << mode;
  }
}

TEST_F(OwnFileTest, belongs_to_root_or_to_the_user) {
  write("text", 0644);
  const uid_t owner = ::geteuid();
  if (owner == 0) {
    EXPECT_EQ(read({.most = 10, .user = 7}), "text");
    ASSERT_EQ(::chown(file().c_str(), 8, 8), 0);
    EXPECT_EQ(read({.most = 10, .user = 8}), "text");
  }
  const std::string whose = std::to_string(owner == 0 ? 8 : owner);
  EXPECT_EQ(read({.most = 10, .user = 7}),
            file() + " belongs to user " + whose + ", who could change it: chown it to root or to user 7");
}

TEST_F(OwnFileTest, has_a_bounded_length) {
  write("0123456789", 0600);
  EXPECT_EQ(read({.most = 10}), "0123456789");
  EXPECT_EQ(read({.most = 9}), file() + " is longer than 9 bytes");
  write("", 0600);
  EXPECT_EQ(read({.most = 10}), "");
}

TEST_F(OwnFileTest, is_a_regular_file_and_nobody_waits_for_another_kind) {
  EXPECT_EQ(read({.most = 10}).find("cannot read " + file()), 0U);
  ASSERT_EQ(::mkfifo(file().c_str(), 0600), 0);
  EXPECT_EQ(read({.most = 10}), file() + " is not a regular file");
}

}  // namespace
}  // namespace lrpc::shim
