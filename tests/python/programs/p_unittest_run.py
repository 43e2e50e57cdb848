import io
import unittest
from unittest import mock


class T(unittest.TestCase):
    def test_ok(self):
        self.assertEqual(sum([1, 2]), 3)

    def test_raises(self):
        with self.assertRaises(ValueError):
            int("x")

    def test_mock(self):
        f = mock.Mock(return_value=5)
        self.assertEqual(f(1), 5)
        f.assert_called_once_with(1)

    @unittest.expectedFailure
    def test_bad(self):
        self.assertTrue(False)


result = unittest.TextTestRunner(stream=io.StringIO()).run(unittest.defaultTestLoader.loadTestsFromTestCase(T))
print(result.testsRun, len(result.failures), len(result.errors), len(result.expectedFailures))
